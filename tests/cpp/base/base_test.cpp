// Errors, hashes, integer arithmetic and options.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/hash.h"
#include "base/math.h"
#include "base/options.h"

namespace rune {
namespace {

TEST(Error, MessagesAreMadeOfTheirParts) {
  EXPECT_EQ(concat("a", 'b', std::string("c"), -7, uint64_t{1} << 63, true, 1.5),
            "abc-7922337203685477580811.5");
  EXPECT_EQ(concat(), "");
  try {
    user_error(ErrorKind::Index, "op: cannot use axis ", 3);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Index);
    EXPECT_STREQ(e.what(), "op: cannot use axis 3");
  }
}

TEST(Error, ChecksNameTheirPlaceAndEvaluateTheMessageOnlyIfTheyFail) {
  int evaluated = 0;
  RUNE_CHECK(true, ++evaluated);
  EXPECT_EQ(evaluated, 0);
  try {
    RUNE_CHECK(evaluated == 1, "evaluated is ", evaluated);
    FAIL();
  } catch (const InternalError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("base_test.cpp"), std::string::npos) << text;
    EXPECT_NE(text.find("evaluated == 1"), std::string::npos) << text;
    EXPECT_NE(text.find("evaluated is 0"), std::string::npos) << text;
  }
  EXPECT_THROW(RUNE_UNREACHABLE(), InternalError);
}

// The published vectors of FNV-1a, since cache keys must be the same on every machine.
TEST(Hash, IsFnv1a) {
  EXPECT_EQ(hash_bytes(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_bytes("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_bytes("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(hash_bytes("bar", hash_bytes("foo")), hash_bytes("foobar"));
  EXPECT_NE(hash_bytes(std::string_view("a\0", 2)), hash_bytes("a"));
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_EQ(hex(0xaf63dc4c8601ec8cu), "af63dc4c8601ec8c");
  EXPECT_EQ(hex(0).size(), hex(~uint64_t{0}).size());
}

TEST(Math, RoundsUp) {
  for (int64_t a = 0; a < 40; ++a)
    for (int64_t b = 1; b < 12; ++b) {
      const int64_t q = ceil_div(a, b);
      EXPECT_TRUE(q * b >= a && (q - 1) * b < a) << a << " / " << b;
      EXPECT_EQ(round_up(a, b), q * b);
    }
}

class OptionsTest : public testing::Test {
 protected:
  void set(const char* variable, const char* value) {
    const char* before = std::getenv(variable);
    changed_.push_back({variable, before ? std::optional<std::string>(before) : std::nullopt});
    setenv(variable, value, 1);
  }
  void TearDown() override {
    for (auto it = changed_.rbegin(); it != changed_.rend(); ++it)
      it->second ? setenv(it->first.c_str(), it->second->c_str(), 1) : unsetenv(it->first.c_str());
  }
  static std::string refusal() {
    try {
      read_environment();
    } catch (const UserError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Value);
      return e.what();
    }
    return "";
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> changed_;
};

TEST_F(OptionsTest, AreReadFromTheEnvironment) {
  set("RUNE_JIT_NUM_THREADS", "3");
  set("RUNE_JIT_TIME", "1");
  set("RUNE_JIT_CACHE", "0");
  set("RUNE_JIT_DUMP", "fuse");
  const Options read = read_environment();
  EXPECT_EQ(read.num_threads, 3);
  EXPECT_TRUE(read.time);
  EXPECT_FALSE(read.cache);
  EXPECT_EQ(read.dump, "fuse");
  set("RUNE_JIT_NUM_THREADS", "");
  EXPECT_EQ(read_environment().num_threads, Options().num_threads);
}

TEST_F(OptionsTest, RefuseWhatDoesNotParse) {
  set("RUNE_JIT_NUM_THREADS", "3x");
  EXPECT_EQ(refusal(), "RUNE_JIT_NUM_THREADS: cannot convert `3x` to an integer");
  set("RUNE_JIT_NUM_THREADS", "99999999999");
  EXPECT_NE(refusal(), "");
  set("RUNE_JIT_NUM_THREADS", "1");
  set("RUNE_JIT_TIME", "yes");
  EXPECT_EQ(refusal(), "RUNE_JIT_TIME: cannot convert `yes` to 0 or 1");
}

TEST(Options, AreDescribedALineEach) {
  const std::string text = describe_options();
#define RUNE_OPTION_STRING(field, variable, fallback, meaning)                          \
  EXPECT_NE(("\n" + text).find(std::string("\n") + variable + "="), std::string::npos); \
  EXPECT_NE(text.find(std::string("  ") + meaning + "\n"), std::string::npos);
#define RUNE_OPTION_INT RUNE_OPTION_STRING
#define RUNE_OPTION_BOOL RUNE_OPTION_STRING
#include "base/options.def"
#undef RUNE_OPTION_STRING
#undef RUNE_OPTION_INT
#undef RUNE_OPTION_BOOL
}

}  // namespace
}  // namespace rune
