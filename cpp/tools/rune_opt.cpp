// rune-opt: reads IR text, runs named passes, prints the result.
//
//   rune-opt FILE [--pass=a,b | --stop-after=a] [--target=cpu] [--render=cpu] [--split-input-file]
//                 [--explain=cpu] [--partition=CHUNKS] [--no-verify] [--list]
//
// FILE is `-` for standard input. Without --pass or --stop-after the IR is parsed, verified and
// printed. With --explain a graph is lowered, and the decisions of its schedule are described. With
// --partition a graph of core nodes is cut into programs of blocks. CHUNKS has the sizes of the
// chunks of each argument by axis: `[[[4,4],[8]],[[8]]]`. On an error, rune-opt prints a message to
// standard error and exits with 1.
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "graph/verify.h"
#include "partition/partition.h"

namespace {

using namespace rune;

struct Arguments {
  std::string file;
  std::vector<std::string> passes;
  std::string stop_after;
  std::string target = "cpu";
  std::string partition;  // chunks
  bool render = false;
  bool explain = false;
  bool split = false;
  bool verify = true;
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) items.push_back(item);
  return items;
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (key == "--pass") {
      arguments.passes = split_list(value);
    } else if (key == "--stop-after") {
      arguments.stop_after = value;
    } else if (key == "--target") {
      arguments.target = value;
    } else if (key == "--render") {
      arguments.render = true;
      arguments.target = value;
    } else if (key == "--explain") {
      arguments.explain = true;
      arguments.target = value;
    } else if (key == "--partition") {
      arguments.partition = value;
    } else if (key == "--split-input-file") {
      arguments.split = true;
    } else if (key == "--no-verify") {
      arguments.verify = false;
    } else if (arguments.file.empty() && (argument == "-" || argument[0] != '-')) {
      arguments.file = argument;
    } else {
      user_error(ErrorKind::Value, "rune-opt: cannot understand `", argument, "`");
    }
  }
  if (arguments.file.empty()) user_error(ErrorKind::Value, "rune-opt: cannot run without a file");
  return arguments;
}

std::string read_file(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(file);
  if (!in) user_error(ErrorKind::Value, "rune-opt: cannot read `", file, "`");
  return {std::istreambuf_iterator<char>(in), {}};
}

// Cases are separated by lines that begin with `; -----`.
std::vector<std::string> split_cases(const std::string& text) {
  std::vector<std::string> cases(1);
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("; -----")) {
      cases.emplace_back();
    } else {
      cases.back() += line + "\n";
    }
  }
  return cases;
}

std::string partition(const driver::State& state, const std::string& text) {
  if (state.stage != driver::Stage::Source ||
      !graph::verify(state.graph, graph::Dialect::Core).empty())
    user_error(ErrorKind::Value, "rune-opt: cannot cut the IR (it is not a graph of core nodes)");
  text::Lexer lexer(text);
  const auto chunks = text::Codec<std::vector<partition::Chunks>>::parse(lexer);
  if (chunks.size() != state.graph.inputs().size())
    user_error(ErrorKind::Value, "rune-opt: cannot cut ", state.graph.inputs().size(),
               " arguments (--partition has the chunks of ", chunks.size(), ")");
  return partition::print(partition::partition(state.graph, chunks));
}

void process(const std::string& text, const Arguments& arguments) {
  const driver::Target& target = driver::find_target(arguments.target);
  driver::State state = driver::parse(text, target.capabilities());
  if (arguments.verify) {
    const std::vector<std::string> violations = driver::verify(state);
    std::string all;
    for (const std::string& violation : violations) all += "\n  " + violation;
    if (!violations.empty()) user_error(ErrorKind::Parse, "verify: the IR is invalid:", all);
  }
  if (arguments.explain) {
    if (state.stage != driver::Stage::Source)
      user_error(ErrorKind::Value, "rune-opt: cannot explain the IR (it is not a graph)");
    std::cout << driver::explain(driver::lower(state.graph, arguments.target));
    return;
  }
  if (!arguments.partition.empty()) {
    std::cout << partition(state, arguments.partition);
    return;
  }
  for (const std::string& name : arguments.passes) driver::run_pass(driver::find_pass(name), state);
  if (!arguments.stop_after.empty() || arguments.render)
    driver::run_pipeline(state, arguments.stop_after);
  if (!arguments.render) {
    std::cout << driver::print(state);
    return;
  }
  for (const std::string& source : target.render(state.kernels)) std::cout << source;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const driver::Pass& pass : driver::pipeline()) std::cout << pass.name << "\n";
    return 0;
  }
  int status = 0;
  try {
    const Arguments arguments = parse_arguments(argc, argv);
    const std::string text = read_file(arguments.file);
    const std::vector<std::string> cases =
        arguments.split ? split_cases(text) : std::vector<std::string>{text};
    for (const std::string& one : cases) {
      try {
        process(one, arguments);
      } catch (const UserError& error) {
        std::cout.flush();
        std::cerr << "error: " << error.what() << "\n";
        status = 1;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return status;
}
