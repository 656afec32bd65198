#include "schedule/text.h"

#include <iterator>

#include "base/error.h"
#include "graph/text.h"

namespace rune::schedule {

namespace {

using text::Codec;
using text::Lexer;

// Structs that print each field on a line of its own.
template <class T>
inline constexpr bool kIsBlock = false;
template <>
inline constexpr bool kIsBlock<IterSpace> = true;

template <class T>
struct Element {
  using Type = void;
  static constexpr bool kIsList = false, kIsOptional = false;
};
template <class T>
struct Element<std::vector<T>> {
  using Type = T;
  static constexpr bool kIsList = true, kIsOptional = false;
};
template <class T>
struct Element<std::optional<T>> {
  using Type = T;
  static constexpr bool kIsList = false, kIsOptional = true;
};

// Structs that print as `word fields`. A value is not one: it prints as `%id`.
template <class T>
inline constexpr bool kIsRecord = text::Reflected<T> && !kIsBlock<T>;

// The word before an entry of a list: entries of `stages` are lines that begin with `stage`.
std::string_view singular(std::string_view key) {
  if (key == "axes") return "axis";
  return key.ends_with('s') ? key.substr(0, key.size() - 1) : key;
}

// Prints the fields of a struct line by line. Structs are printed as `word fields`, lists of
// structs as one such line for each entry, and everything else as `key=value`. Empty lists of
// values are left out.
class LinePrinter {
 public:
  LinePrinter(std::string& out, int indent) : out_(out), indent_(indent, ' ') {}

  template <class T>
  void operator()(std::string_view key, const T& member) {
    using Entry = typename Element<T>::Type;
    if constexpr (kIsBlock<T>) {
      const_cast<T&>(member).fields(*this);
    } else if constexpr (std::is_same_v<T, Kernel::Body>) {
      std::visit(
          [this](auto& body) {
            const_cast<std::remove_cvref_t<decltype(body)>&>(body).fields(*this);
          },
          member);
    } else if constexpr (std::is_same_v<Entry, Kernel>) {
      for (const Kernel& entry : member) {
        out_ += concat(indent_, singular(key), " {\n");
        const_cast<Kernel&>(entry).fields(LinePrinter(out_, static_cast<int>(indent_.size()) + 2));
        out_ += indent_ + "}\n";
      }
    } else if constexpr (kIsRecord<T>) {
      record(key, member);
    } else if constexpr (Element<T>::kIsList && kIsRecord<Entry>) {
      for (const Entry& entry : member) record(singular(key), entry);
    } else if constexpr (std::is_same_v<Entry, Value>) {
      if (!member.empty()) attribute(key, member);
    } else if constexpr (Element<T>::kIsOptional) {
      if (!member) return;
      if constexpr (kIsRecord<Entry>) {
        record(key, *member);
      } else {
        attribute(key, *member);
      }
    } else {
      attribute(key, member);
    }
  }

 private:
  template <class T>
  void record(std::string_view word, const T& value) {
    out_ += indent_;
    out_ += word;
    text::print_fields(out_, value);
    out_ += '\n';
  }

  template <class T>
  void attribute(std::string_view key, const T& value) {
    out_ += indent_;
    out_ += key;
    out_ += '=';
    Codec<T>::print(out_, value);
    out_ += '\n';
  }

  std::string& out_;
  const std::string indent_;
};

// Reads the text of LinePrinter.
class LineParser {
 public:
  explicit LineParser(Lexer& lexer) : lexer_(lexer) {}

  template <class T>
  void operator()(std::string_view key, T& member) {
    using Entry = typename Element<T>::Type;
    if constexpr (kIsBlock<T>) {
      member.fields(*this);
    } else if constexpr (std::is_same_v<T, Kernel::Body>) {
      // The word of its first line determines the kind of kernel.
      if (at_record("phase")) member = Phased{};
      if (at_record("matrix")) member = MatrixTiled{};
      std::visit([this](auto& body) { body.fields(*this); }, member);
    } else if constexpr (std::is_same_v<Entry, Kernel>) {
      while (at_record(singular(key))) {
        lexer_.ident();
        lexer_.expect("{");
        member.emplace_back().fields(*this);
        lexer_.expect("}");
      }
    } else if constexpr (kIsRecord<T>) {
      lexer_.expect_ident(key);
      text::parse_fields(lexer_, member);
    } else if constexpr (Element<T>::kIsList && kIsRecord<Entry>) {
      while (at_record(singular(key))) member.push_back(record<Entry>());
    } else if constexpr (std::is_same_v<Entry, Value>) {
      if (at_attribute(key)) member = attribute<T>();
    } else if constexpr (Element<T>::kIsOptional) {
      if constexpr (kIsRecord<Entry>) {
        if (at_record(key)) member = record<Entry>();
      } else {
        if (at_attribute(key)) member = attribute<Entry>();
      }
    } else {
      if (!at_attribute(key)) lexer_.fail(concat("expected the attribute ", key, "="));
      member = attribute<T>();
    }
  }

 private:
  bool at_record(std::string_view word) const {
    return lexer_.lookahead_ident() == word && !lexer_.peek_attribute();
  }
  bool at_attribute(std::string_view key) const {
    return lexer_.lookahead_ident() == key && lexer_.peek_attribute();
  }

  template <class T>
  T record() {
    T result{};
    lexer_.ident();
    text::parse_fields(lexer_, result);
    return result;
  }

  template <class T>
  T attribute() {
    lexer_.ident();
    lexer_.expect("=");
    return Codec<T>::parse(lexer_);
  }

  Lexer& lexer_;
};

// The kinds of items, in the order of the operation's alternatives.
using Operation = decltype(ScheduleItem::operation);
constexpr std::string_view kKinds[] = {"launch", "transfer", "synchronization", "callback",
                                       "loops"};
static_assert(std::size(kKinds) == std::variant_size_v<Operation>);

void print_item(std::string& out, size_t number, const ScheduleItem& item) {
  out += concat("  item ", number, " ", kKinds[item.operation.index()], " {\n");
  std::visit(
      [&](const auto& operation) {
        using T = std::remove_cvref_t<decltype(operation)>;
        const_cast<T&>(operation).fields(LinePrinter(out, 4));
      },
      item.operation);
  out += "  }\n";
}

template <size_t kind = 0>
Operation make_operation(const Lexer& start, const std::string& word) {
  if constexpr (kind < std::size(kKinds)) {
    if (word == kKinds[kind]) return Operation(std::in_place_index<kind>);
    return make_operation<kind + 1>(start, word);
  }
  start.fail("unknown kind of item `" + word + "`");
}

ScheduleItem parse_item(Lexer& lexer, size_t number) {
  lexer.expect_ident("item");
  if (lexer.integer() != static_cast<int64_t>(number))
    lexer.fail(concat("expected item ", number, ": items are numbered in order"));
  const Lexer start = lexer;
  ScheduleItem item{make_operation(start, lexer.ident())};
  lexer.expect("{");
  std::visit([&](auto& operation) { operation.fields(LineParser(lexer)); }, item.operation);
  lexer.expect("}");
  return item;
}

// The fields of a schedule other than its graph and items.
template <class T, class F>
void plan_fields(T& schedule, F&& f) {
  f("outputs", schedule.outputs);
  f("dependency", schedule.dependencies);
  f("allocation", schedule.allocations);
  f("fusion", schedule.fusion_opportunities);
  f("cost", schedule.analysis);
  f("critical_path", schedule.critical_path);
  f("arena_bytes", schedule.arena_bytes);
  f("total_memory_usage", schedule.total_memory_usage);
  f("estimated_runtime_ns", schedule.estimated_runtime_ns);
}

std::string indented(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    result += "  " + text.substr(begin, end - begin) + '\n';
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return result;
}

}  // namespace

std::string print(const Schedule& schedule) {
  std::string out = "schedule {\n" + indented(graph::print(schedule.graph));
  LinePrinter(out, 2)("kernels", schedule.kernels);
  for (size_t i = 0; i < schedule.items.size(); ++i) print_item(out, i, schedule.items[i]);
  plan_fields(schedule, LinePrinter(out, 2));
  return out + "}\n";
}

Schedule parse(std::string_view source) {
  Lexer lexer(source);
  Schedule schedule;
  lexer.expect_ident("schedule");
  lexer.expect("{");
  schedule.graph = graph::parse(lexer);
  LineParser{lexer}("kernels", schedule.kernels);
  while (lexer.lookahead_ident() == "item")
    schedule.items.push_back(parse_item(lexer, schedule.items.size()));
  plan_fields(schedule, LineParser(lexer));
  lexer.expect("}");
  if (!lexer.at_end()) lexer.fail("expected the end of the text");
  return schedule;
}

bool equal(const Schedule& a, const Schedule& b) {
  return graph::equal(a.graph, b.graph) && a.kernels == b.kernels && a.items == b.items &&
         a.outputs == b.outputs && a.dependencies == b.dependencies &&
         a.allocations == b.allocations && a.fusion_opportunities == b.fusion_opportunities &&
         a.analysis == b.analysis && a.critical_path == b.critical_path &&
         a.arena_bytes == b.arena_bytes && a.total_memory_usage == b.total_memory_usage &&
         a.estimated_runtime_ns == b.estimated_runtime_ns;
}

}  // namespace rune::schedule
