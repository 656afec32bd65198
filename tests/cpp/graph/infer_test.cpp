#include "graph/infer.h"

#include "graph_testing.h"

namespace rune::graph {
namespace {

// A node on operands written as types, `f32[2,3] i64[]`, and what is inferred or the error.
struct Case {
  const char* node;      // as in IR text, without operands and type
  const char* operands;  // types
  const char* expected;  // a type, or the error's text
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.node << " " << c.operands;
}

std::vector<Metadata> parse_types(const char* types) {
  std::vector<Metadata> result;
  text::Lexer lexer(types);
  while (!lexer.at_end()) {
    Metadata meta;
    meta.dtype = text::Codec<DType>::parse(lexer);
    meta.shape = text::Codec<Shape>::parse(lexer);
    if (lexer.accept("@")) meta.device = lexer.string_literal();
    result.push_back(std::move(meta));
  }
  return result;
}

std::string infer_text(const Case& c) {
  const Payload payload =
      parse(concat("graph { %0 = ", c.node, " : f32[2,3] return }")).nodes[0].payload;
  const std::vector<Metadata> operands = parse_types(c.operands);
  std::vector<const Metadata*> pointers;
  for (const Metadata& m : operands) pointers.push_back(&m);
  try {
    const Metadata meta = infer(payload, pointers, {DType::Float32, {2, 3}, "declared"});
    return concat(rune::name_of(meta.dtype), shape_text(meta.shape),
                  meta.device ? " @" + *meta.device : "");
  } catch (const UserError& error) {
    return error.what();
  }
}

class Infer : public testing::TestWithParam<Case> {};

TEST_P(Infer, GivesTypeOrError) {
  EXPECT_EQ(infer_text(GetParam()), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Memory, Infer,
    testing::Values(
        Case{"buffer size=6 device=\"gpu\"", "", "f32[2,3] @gpu"},
        Case{"buffer size=6 device=\"\"", "", "f32[2,3]"},
        Case{"buffer size=7 device=\"\"", "",
             "buffer: cannot give the shape [2,3] to 7 elements (number of elements: 6 and 7)"},
        Case{"buffer_view size=4 offset=8", "i8[12]", "i8[4]"},
        Case{"buffer_view size=4 offset=9", "i8[12]",
             "buffer_view: cannot view 4 elements of [12] from element 9 (dimension 0: 12)"},
        Case{"buffer_view size=9223372036854775807 offset=1", "i8[12]",
             "buffer_view: cannot view 9223372036854775807 elements of [12] from element 1 "
             "(dimension 0: 12)"},
        Case{"buffer_view size=-1 offset=0", "i8[12]",
             "buffer_view: cannot view -1 elements of [12] from element 0 (dimension 0: 12)"},
        Case{"buffer_view size=1 offset=0", "i8[3,4]",
             "buffer_view: cannot view a part of [3,4] (number of dimensions: 2, expected 1)"},
        Case{"placeholder index=0", "", "f32[2,3] @declared"},
        Case{"placeholder index=-1", "",
             "placeholder: cannot be argument -1 (index: -1 is negative)"},
        Case{"const_scalar u8(3)", "", "u8[]"}, Case{"vconst [i8(1),i8(2)]", "", "i8[2]"},
        Case{"vconst []", "", "vconst: cannot make a constant of no values (its dtype is unknown)"},
        Case{"vconst [i8(1),u8(2)]", "", "vconst: cannot join int8 to uint8 (value 1)"},
        Case{"iota i32 shape=[5]", "", "i32[5]"}, Case{"iota u8 shape=[256]", "", "u8[256]"},
        Case{"iota i8 shape=[129]", "",
             "iota: cannot convert 128 to int8 (it does not hold the last number)"},
        Case{"iota f32 shape=[5]", "",
             "iota: cannot count in float32 (it is not an integer dtype)"},
        Case{"iota i64 shape=[2,3]", "",
             "iota: cannot count along [2,3] (number of dimensions: 2, expected 1)"},
        Case{"contiguous", "i8[3]", "i8[3]"},
        Case{"copy device=\"gpu\" clone=false", "i8[3]", "i8[3] @gpu"},
        Case{"copy device=\"\" clone=false", "i8[3] @\"gpu\"", "i8[3]"},
        Case{"assign boxes=[[],[(0,2),(1,1)]]", "i8[2,3] i8[2,3] i8[2,0]", "i8[2,3]"},
        Case{"assign boxes=[[]]", "i8[] i8[]", "i8[]"},
        Case{"assign boxes=[[]]", "i8[2] i8[2] i8[2]",
             "assign: cannot write 2 values to 1 boxes (number of values: 2 and 1)"},
        Case{"assign boxes=[[]]", "i8[2] u8[2]",
             "assign: cannot take uint8 as operand 1 (dtype: uint8, expected int8)"},
        Case{"assign boxes=[[]]", "i8[2] i8[3]",
             "assign: cannot write value 0 of [3] to [2] (dimension 0: 3 and 2)"},
        Case{"assign boxes=[[(1,2)]]", "i8[2,3] i8[2]",
             "assign: cannot apply 1 limits of a box to [2,3] (number of dimensions: 1 and 2)"},
        Case{"assign boxes=[[(0,2),(1,4)]]", "i8[2,3] i8[2,3]",
             "assign: cannot write the box [(0,2),(1,4)] of [2,3] (dimension 1: [1,4) of 3)"}));

INSTANTIATE_TEST_SUITE_P(
    Arithmetic, Infer,
    testing::Values(
        Case{"binop add", "f16[2,3] f16[2,3]", "f16[2,3]"},
        Case{"binop cmplt", "f16[2,3] f16[2,3]", "bool[2,3]"},
        Case{"binop add", "f32[8,4] f32[8,5]",
             "add: cannot combine [8,4] with [8,5] (dimension 1: 4 and 5)"},
        Case{"binop add", "f32[4] f32[1,4]",
             "add: cannot combine [4] with [1,4] (number of dimensions: 1 and 2)"},
        Case{"binop add", "f32[4] f64[4]",
             "add: cannot take float32 with float64 (operand 0 must be float64)"},
        Case{"binop add", "bool[4] bool[4]", "add: cannot take operands of dtype bool"},
        Case{"binop add", "f32[4]", "add: cannot take 1 operands (expected 2)"},
        Case{"binop where", "f32[4] f32[4]", "where: cannot take 2 operands (it has 3)"},
        Case{"unary exp", "f64[0]", "f64[0]"},
        Case{"unary exp", "i32[4]", "exp: cannot take operands of dtype int32"},
        Case{"ternary where", "bool[4] u8[4] u8[4]", "u8[4]"},
        Case{"ternary where", "u8[4] u8[4] u8[4]",
             "where: cannot take uint8 with uint8 (operand 0 must be bool)"},
        Case{"ternary where", "bool[4] u8[4] u8[5]",
             "where: cannot combine [4] with [5] (dimension 0: 4 and 5)"},
        Case{"ternary mulacc", "f32[] f32[] f32[]", "f32[]"},
        Case{"binop add", "f32[] f32[] @\"gpu\"", "f32[] @gpu"},
        Case{"binop add", "f32[] @\"cpu\" f32[] @\"gpu\"",
             "add: cannot combine an array on cpu with one on gpu (operand 1)\n"
             "hint: copy one of them to the other's device"},
        Case{"cast i8", "f32[3]", "i8[3]"}, Case{"bitcast i32", "f32[3]", "i32[3]"},
        Case{"bitcast i64", "f32[3]",
             "bitcast: cannot reinterpret float32 as int64 (item size: 4 and 8)"},
        Case{"reduce_axis add axes=[0,2]", "i32[2,3,4]", "i32[1,3,1]"},
        Case{"reduce_axis max axes=[0]", "bool[0]", "bool[1]"},
        Case{"reduce_axis add axes=[3]", "i32[2,3,4]",
             "reduce_axis add: cannot use axis 3 of [2,3,4] (number of dimensions: 3)"},
        Case{"reduce_axis add axes=[1,1]", "i32[2,3]",
             "reduce_axis add: cannot use axes [1,1] of [2,3] (axis 1 is named twice)"},
        Case{"reduce_axis prod axes=[0]", "bool[2]",
             "reduce_axis prod: cannot reduce bool to bool (dtype: bool)\n"
             "hint: cast to an integer first"},
        Case{"wmma m=8 n=4 k=2", "f16[8,2] f16[2,4] f32[8,4]", "f32[8,4]"},
        Case{"wmma m=8 n=4 k=2", "f16[8,2] f16[4,2] f32[8,4]",
             "wmma: cannot take operand 1 of [4,2] as [2,4] (dimension 0: 4 and 2)"},
        Case{"wmma m=8 n=4 k=2", "f32[8,2] f32[2,4] f16[8,4]",
             "wmma: cannot accumulate float32 in float16 (dtypes: floats, the accumulator at least "
             "as wide)"},
        Case{"wmma m=8 n=4 k=2", "f16[8,2] f32[2,4] f32[8,4]",
             "wmma: cannot take float32 as operand 1 (dtype: float32, expected float16)"},
        Case{"contract contract=[(1,0)] batch=[]", "f32[2,3] f32[3,4]", "f32[2,4]"},
        Case{"contract contract=[(2,1)] batch=[(0,2)]", "f32[5,2,3] f32[4,3,5]", "f32[5,2,4]"},
        Case{"contract contract=[] batch=[]", "f32[2] f32[3]", "f32[2,3]"},
        Case{"contract contract=[(1,0)] batch=[]", "f32[2,3] f32[4,5]",
             "contract: cannot contract [2,3] with [4,5] (contraction of dimensions 1 and 0: 3 and "
             "4)"},
        Case{"contract contract=[(0,0)] batch=[(0,1)]", "f32[3] f32[3,3]",
             "contract: cannot use axis 0 of [3] twice (operand 0, in contraction)"},
        Case{"contract contract=[(1,0)] batch=[]", "f32[2] f32[2]",
             "contract: cannot use axis 1 of [2] (number of dimensions: 1)"},
        Case{"contract contract=[(0,0)] batch=[]", "bool[2] bool[2]",
             "contract: cannot sum products of bool (dtype: bool, expected an integer or a float)"},
        Case{"threefry", "u32[4,2] u32[4,2]", "u32[4,2]"},
        Case{"threefry", "u32[4,2] u32[2]",
             "threefry: cannot combine counters of [4,2] with keys of [2] (number of dimensions: 2 "
             "and 1)"},
        Case{"threefry", "u32[4,2] u32[4,3]",
             "threefry: cannot read pairs from [4,3] (operand 1: the last dimension must be 2)"},
        Case{"threefry", "i32[4,2] u32[4,2]",
             "threefry: cannot take int32 as operand 0 (dtype: int32, expected uint32)"}));

INSTANTIATE_TEST_SUITE_P(
    Movement, Infer,
    testing::Values(
        Case{"view {views=[{shape=[2,2] strides=[3,-1] offset=1}]}", "i8[6]", "i8[2,2]"},
        Case{
            "view {views=[]}", "i8[6]",
            "view: cannot view [6] through a tracker of no views (views: 0, at least 1 is needed)"},
        Case{"view {views=[{shape=[2,2] strides=[4,-1] offset=2}]}", "i8[6]",
             "view: cannot read elements [1,7) of 6 (view 0: {shape=[2,2] strides=[4,-1] "
             "offset=2})"},
        Case{"view {views=[{shape=[2,2] strides=[4] offset=2}]}", "i8[6]",
             "view: cannot give [4] as strides of [2,2] (view 0, number of dimensions: 1 and 2)"},
        Case{"view {views=[{shape=[6] strides=[1] offset=0},{shape=[7] strides=[1] offset=0}]}",
             "i8[6]",
             "view: cannot read elements [0,7) of 6 (view 1: {shape=[7] strides=[1] offset=0})"},
        Case{"view {views=[{shape=[9] strides=[1] offset=-2 mask=[(2,8)]}]}", "i8[6]", "i8[9]"},
        Case{"view {views=[{shape=[9] strides=[1] offset=-2 mask=[(3,3)]}]}", "i8[0]", "i8[9]"},
        Case{"view {views=[{shape=[9] strides=[1] offset=-2 mask=[(2,10)]}]}", "i8[6]",
             "view: cannot mask [9] by [(2,10)] (view 0, dimension 0: [2,10) of 9)"},
        Case{"view {views=[{shape=[9] strides=[1] offset=-2 mask=[]}]}", "i8[6]",
             "view: cannot mask [9] by [] (view 0, number of dimensions: 1 and 0)"},
        Case{"valid {views=[{shape=[9] strides=[1] offset=-2 mask=[(2,8)]}]}", "i8[6]", "bool[9]"},
        Case{"reshape shape=[4,3]", "i8[2,6]", "i8[4,3]"},
        Case{"reshape shape=[]", "i8[1]", "i8[]"},
        Case{"reshape shape=[4]", "i8[2,3]",
             "reshape: cannot reshape [2,3] to [4] (number of elements: 6 and 4)"},
        Case{"reshape shape=[-1,-6]", "i8[2,3]",
             "reshape: cannot make an array of shape [-1,-6] (dimension 0: -1 is negative)"},
        Case{"permute axes=[2,0,1]", "i8[2,3,4]", "i8[4,2,3]"},
        Case{"permute axes=[0,0]", "i8[2,3]",
             "permute: cannot use axes [0,0] of [2,3] (axis 0 is named twice)"},
        Case{"permute axes=[0]", "i8[2,3]",
             "permute: cannot apply 1 axes to [2,3] (number of dimensions: 1 and 2)"},
        Case{"permute axes=[0,-1]", "i8[2,3]",
             "permute: cannot use axis -1 of [2,3] (number of dimensions: 2)"},
        Case{"expand shape=[5,3]", "i8[1,3]", "i8[5,3]"},
        Case{"expand shape=[0]", "i8[1]", "i8[0]"},
        Case{"expand shape=[4,3]", "i8[2,3]",
             "expand: cannot expand [2,3] to [4,3] (dimension 0: 2 and 4)\n"
             "hint: only dimensions of size 1 expand"},
        Case{"expand shape=[1,3]", "i8[3]",
             "expand: cannot expand [3] to [1,3] (dimension 0: 3 and 1)\n"
             "hint: only dimensions of size 1 expand"},
        Case{"expand shape=[3,3]", "i8[3]",
             "expand: cannot expand [3] to [3,3] (number of dimensions: 1 and 2)"},
        Case{"expand shape=[4294967296,4294967296]", "i8[1,1]",
             "shape: cannot hold [4294967296,4294967296] (more than 2^63 elements)"},
        Case{"pad widths=[(1,2),(0,0)]", "i8[2,3]", "i8[5,3]"},
        Case{"pad widths=[(1,2)]", "i8[2,3]",
             "pad: cannot apply 1 widths to [2,3] (number of dimensions: 1 and 2)"},
        Case{"pad widths=[(0,0),(2,-1)]", "i8[2,3]",
             "pad: cannot pad [2,3] by [(0,0),(2,-1)] (dimension 1: (2,-1))\n"
             "hint: shrink takes elements away"},
        Case{"shrink limits=[(1,2),(3,3)]", "i8[2,3]", "i8[1,0]"},
        Case{"shrink limits=[(1,2),(2,4)]", "i8[2,3]",
             "shrink: cannot shrink [2,3] to [(1,2),(2,4)] (dimension 1: [2,4) of 3)"},
        Case{"shrink limits=[(2,1),(0,3)]", "i8[2,3]",
             "shrink: cannot shrink [2,3] to [(2,1),(0,3)] (dimension 0: [2,1) of 2)"},
        Case{"shrink limits=[]", "i8[2]",
             "shrink: cannot apply 0 limits to [2] (number of dimensions: 0 and 1)"},
        Case{"flip axes=[1]", "i8[2,3]", "i8[2,3]"},
        Case{"flip axes=[2]", "i8[2,3]",
             "flip: cannot use axis 2 of [2,3] (number of dimensions: 2)"},
        Case{"cat axis=1", "i8[2,3] i8[2,0] i8[2,4]", "i8[2,7]"},
        Case{"cat axis=1", "i8[2,3] i8[3,3]",
             "cat: cannot join [2,3] to [3,3] along axis 1 (dimension 0: 2 and 3)"},
        Case{"cat axis=0", "i8[2,3] i8[3]",
             "cat: cannot join [2,3] to [3] along axis 0 (number of dimensions: 2 and 1)"},
        Case{"cat axis=0", "i8[] i8[]", "cat: cannot use axis 0 of [] (number of dimensions: 0)"},
        Case{"cat axis=0", "i8[2] f32[2]",
             "cat: cannot take float32 as operand 1 (dtype: float32, expected int8)"},
        Case{"cat axis=0", "", "cat: cannot take 0 operands (expected at least 1)"}));

INSTANTIATE_TEST_SUITE_P(
    Indexing, Infer,
    testing::Values(
        Case{"index", "f32[5,5] i64[2,3]", "f32[2,3]"},
        Case{"index", "f32[5] u8[2] bool[2]", "f32[2]"},
        Case{"index", "f32[5] f32[2]",
             "index: cannot use float32 as index (dtype: float32, expected an integer)"},
        Case{"index", "f32[5] i8[2] bool[3]",
             "index: cannot mask indices of [2] by [3] (dimension 0: 2 and 3)"},
        Case{"index", "f32[5] i8[2] i8[2]",
             "index: cannot take int8 as operand 2 (dtype: int8, expected bool)"},
        Case{"index", "f32[5]", "index: cannot take 1 operands (expected 2 to 3)"},
        Case{"shuffle indices=[1,1,0]", "f32[5,2]", "f32[5,3]"},
        Case{"shuffle indices=[2]", "f32[5,2]",
             "shuffle: cannot take lanes [2] of [5,2] (dimension 1: 2 of 2)"},
        Case{"shuffle indices=[0]", "f32[]",
             "shuffle: cannot take lanes of [] (number of dimensions: 0, at least 1 is needed)"},
        Case{"vectorize", "f32[5] f32[5]", "f32[5,2]"},
        Case{"vectorize", "f32[5] f32[4]",
             "vectorize: cannot stack [5] with [4] (dimension 0: 5 and 4)"},
        Case{"vectorize", "f32[5] i8[5]",
             "vectorize: cannot take int8 as operand 1 (dtype: int8, expected float32)"},
        Case{"gather axis=1", "f32[4,5,6] i32[2,3]", "f32[4,2,3,6]"},
        Case{"gather axis=0", "f32[4] i32[]", "f32[]"},
        Case{"gather axis=1", "f32[4] i32[]",
             "gather: cannot use axis 1 of [4] (number of dimensions: 1)"},
        Case{"gather axis=0", "f32[4] bool[4]",
             "gather: cannot use bool as index (dtype: bool, expected an integer)"},
        Case{"scatter set axis=1", "f32[4,5] i32[3] f32[4,3]", "f32[4,5]"},
        Case{"scatter add axis=0", "f32[4,5] i32[3] f32[4,3]",
             "scatter: cannot write updates of [4,3] to elements of [3,5] (dimension 0: 4 and 3)"},
        Case{"scatter add axis=2 batch=1", "f32[2,4,5] i32[2,3] f32[2,4,3]", "f32[2,4,5]"},
        Case{"scatter add axis=1 batch=1", "f32[2,5] i32[3,4] f32[2,4]",
             "scatter: cannot share the first 1 axes of [2,5] with indices of [3,4]"},
        Case{"scatter add axis=0 batch=1", "f32[2] i32[2,3] f32[3]",
             "scatter: cannot share 1 axes before axis 0"},
        Case{"scatter add axis=0", "bool[4] i32[3] bool[3]",
             "scatter: cannot add to bool (mode add needs an integer or a float)"},
        Case{"scatter set axis=0", "i8[4] i32[3] u8[3]",
             "scatter: cannot take uint8 as operand 2 (dtype: uint8, expected int8)"}));

INSTANTIATE_TEST_SUITE_P(
    ComplexNumbers, Infer,
    testing::Values(
        Case{"complex", "f32[2] f32[2]", "c64[2]"}, Case{"complex", "f64[] f64[]", "c128[]"},
        Case{"complex", "f16[2] f16[2]",
             "complex: cannot make complex numbers of float16 (dtype: float16, expected float32 or "
             "float64)"},
        Case{"complex", "f32[2] f64[2]",
             "complex: cannot take float64 as operand 1 (dtype: float64, expected float32)"},
        Case{"real", "c64[2]", "f32[2]"}, Case{"imag", "c128[2]", "f64[2]"},
        Case{"imag", "f32[2]",
             "real, imag: cannot take a part of float32 (dtype: float32, expected a complex one)"},
        Case{"binop add", "c64[2] c64[2]", "c64[2]"},
        Case{"binop mul", "c64[2] c64[2]", "mul: cannot take operands of dtype complex64"},
        Case{"reduce_axis add axes=[0]", "c64[2]", "c64[1]"}, Case{"cast i8", "c64[2]", "i8[2]"},
        Case{"contract contract=[(0,0)] batch=[]", "c64[2] c64[2]", "c64[]"}));

INSTANTIATE_TEST_SUITE_P(
    Marks, Infer,
    testing::Values(
        Case{"define_var {name=\"n\" min=1 max=1}", "", "i64[]"},
        Case{"define_var {name=\"\" min=1 max=1}", "",
             "define_var: cannot define a variable without a name"},
        Case{"define_var {name=\"n\" min=2 max=1}", "",
             "define_var: cannot bound n by [2,1] (the lower bound is above the upper)"},
        Case{"bind value=3", "i64[]", "i64[]"},
        Case{"bind value=3", "i64[1]",
             "bind: cannot bind 3 to a variable of [1] as [] (number of dimensions: 1 and 0)"},
        Case{"bind value=3", "i32[]",
             "bind: cannot take int32 as operand 0 (dtype: int32, expected int64)"},
        Case{"detach", "i8[2]", "i8[2]"}, Case{"contiguous_backward", "i8[2]", "i8[2]"},
        Case{"fuse", "i8[2] @\"gpu\"", "i8[2] @gpu"},
        Case{"sink", "i8[2] @\"a\" i8[3] @\"b\"", "bool[0]"}, Case{"noop", "", "bool[0]"},
        Case{"noop", "i8[2]", "i8[2]"},
        Case{"noop", "i8[2] i8[2]", "noop: cannot take 2 operands (expected 0 to 1)"},
        Case{"unique id=4", "", "i64[]"}, Case{"device name=\"gpu\"", "", "bool[0] @gpu"},
        Case{"device name=\"\"", "", "device: cannot make a device (its name is empty)"},
        Case{"kernel name=\"k\" local_dims=1 upcasted=0 dont_use_locals=false", "i8[2] f32[3]",
             "i8[2]"},
        Case{"kernel name=\"k\" local_dims=-1 upcasted=0 dont_use_locals=false", "i8[2]",
             "kernel: cannot map -1 local and 0 upcasted dimensions (one is negative)"},
        Case{"multi axis=1 real=[true,false]", "i8[2,3] @\"a\" i8[2,4] @\"b\"", "i8[2,7]"},
        Case{"multi real=[true,false]", "i8[2,3] @\"a\" i8[2,3] @\"b\"", "i8[2,3]"},
        Case{"multi real=[true,false]", "i8[2,3] i8[2,4]",
             "multi: cannot join a shard of [2,3] to one of [2,4] (dimension 1: 3 and 4)"},
        Case{"multi axis=0 real=[true,false]", "i8[2,3] i8[2,4]",
             "multi: cannot join a shard of [2,3] to one of [2,4] (dimension 1: 3 and 4)"},
        Case{"multi axis=2 real=[true]", "i8[2,3]",
             "multi: cannot use axis 2 of [2,3] (number of dimensions: 2)"},
        Case{"multi real=[true]", "i8[2] i8[2]",
             "multi: cannot mark 2 shards by 1 flags (number of shards: 2 and 1)"},
        Case{"unroll factor=4", "i8[2]", "i8[2]"},
        Case{
            "unroll factor=0", "i8[2]",
            "unroll: cannot unroll the last axis of [2] by 0 (number of dimensions: 1, at least 1; "
            "factor: 0, at least 1)"},
        Case{"custom \"f\" attributes=[]", "i8[2]", "f32[2,3] @declared"},
        Case{"custom \"\" attributes=[]", "i8[2]",
             "custom: cannot make an operation (its name is empty)"}));

TEST(Builder, MakesNoNodeThatChangesNothing) {
  Builder b;
  const Value x = b.placeholder(DType::Float32, {2, 3});
  EXPECT_EQ(b.reshape(x, {2, 3}), x);
  EXPECT_EQ(b.permute(x, {0, 1}), x);
  EXPECT_EQ(b.expand(x, {2, 3}), x);
  EXPECT_EQ(b.pad(x, {{0, 0}, {0, 0}}), x);
  EXPECT_EQ(b.shrink(x, {{0, 2}, {0, 3}}), x);
  EXPECT_EQ(b.flip(x, {}), x);
  EXPECT_EQ(b.reduce(ReduceOp::Add, x, {}), x);
  EXPECT_EQ(b.cast(x, DType::Float32), x);
  EXPECT_EQ(b.bitcast(x, DType::Float32), x);
  EXPECT_EQ(b.cat({x}, 0), x);
  EXPECT_EQ(b.size(), 1u);
  const Value c = b.contiguous(x);
  EXPECT_EQ(b.contiguous(c), c);
  const size_t before = b.size();
  b.full(Scalar::one(DType::Int8), {});
  EXPECT_EQ(b.size(), before + 1);
}

TEST(Builder, NumbersPlaceholdersAlsoOfAGraphThatItContinues) {
  Builder b;
  b.placeholder(DType::Float32, {});
  b.add(Placeholder{4}, {}, {DType::Float32, {}, std::nullopt});
  Builder continued(b.take());
  const Value next = continued.placeholder(DType::Int8, {});
  EXPECT_EQ(continued[next].as<Placeholder>()->index, 5);
}

TEST(Builder, RefusesOperandsThatDoNotExist) {
  Builder b;
  EXPECT_THROW(b.add(Unary{AluOp::Neg}, {Value{0}}), InternalError);
  EXPECT_THROW(b.add(Unary{AluOp::Neg}, {Value{}}), InternalError);
}

TEST(Builder, RecordsLocations) {
  Builder b;
  b.set_location("a.py:1");
  const Value x = b.placeholder(DType::Float32, {});
  b.set_location("a.py:2");
  EXPECT_EQ(b[x].location, "a.py:1");
  EXPECT_EQ(b[b.alu(AluOp::Neg, {x})].location, "a.py:2");
}

TEST(Graph, ListsInputsByIndexAndVariablesOnce) {
  const Graph graph = parse(
      "graph { %0 = placeholder index=1 : i8[] %1 = define_var {name=\"n\" min=0 max=4} : i64[] "
      "%2 = placeholder index=0 : i8[] %3 = define_var {name=\"n\" min=0 max=4} : i64[] return }");
  EXPECT_EQ(graph.inputs(), (std::vector<Value>{{2}, {0}}));
  EXPECT_EQ(graph.symbolic_vars(), (std::vector<SymVar>{{"n", 0, 4}}));
}

}  // namespace
}  // namespace rune::graph
