#include "backends/cuda/cublas.h"

#include <utility>

#include "backends/cuda/library.h"
#include "backends/cuda/services.h"
#include "base/error.h"
#include "base/options.h"

namespace rune::cuda {

namespace {

// Numbers from cublas_api.h.
constexpr int kAsStored = 0, kTransposed = 1;
constexpr int kAddInFloat32 = 16;  // even partial results of products of narrow dtypes
constexpr int kComputeFloat32 = 68, kComputeFloat64 = 70;
constexpr int kDefaultAlgorithm = -1;

int data_type(DType dtype) {
  switch (dtype) {
    case DType::Float32: return 0;
    case DType::Float64: return 1;
    case DType::Float16: return 2;
    case DType::Bfloat16: return 14;
    default: break;
  }
  RUNE_UNREACHABLE();
}

// A matrix for cuBLAS, which wants contiguous columns: the matrix as it is stored, or transposed.
struct Stored {
  int form = kAsStored;
  int column_step = 1;
  explicit Stored(const MatrixProduct::Matrix& matrix, int64_t row_step, int64_t column_step)
      : form(row_step == 1 ? kAsStored : kTransposed),
        column_step(static_cast<int>(row_step == 1 ? column_step : row_step)) {
    RUNE_CHECK(row_step == 1 || column_step == 1, "a matrix at ", matrix.offset,
               " has no contiguous side");
  }
};

}  // namespace

struct Cublas::Library {
  using Handle = struct CublasObject*;
  using Scalar = const void*;

  explicit Library(const std::string& file) : next_to_it(beside(file)), library(file) {
    const auto find = [&](const char* symbol, auto& function) {
      is_complete &= library.load(symbol, function);
    };
    find("cublasCreate_v2", create);
    find("cublasSetStream_v2", set_stream);
    find("cublasSetMathMode", set_math_mode);
    find("cublasGetStatusString", status_string);
    find("cublasGemmEx", product);
    find("cublasGemmStridedBatchedEx", products);
  }

  // The file of cublasLt beside cuBLAS's own, which needs it. The system may not search this
  // folder.
  static std::string beside(std::string file) {
    const size_t name = file.rfind("libcublas.");
    return name == std::string::npos ? file : file.insert(name + 9, "Lt");
  }

  bool start(StreamHandle stream) {
    return is_complete && create(&handle) == 0 && set_stream(handle, stream) == 0 &&
           set_math_mode(handle, kAddInFloat32) == 0;
  }

  cuda::Library next_to_it, library;
  bool is_complete = true;
  Handle handle = nullptr;
  std::mutex mutex;  // a handle serves one thread at a time
  int (*create)(Handle* handle) = nullptr;
  int (*set_stream)(Handle handle, StreamHandle stream) = nullptr;
  int (*set_math_mode)(Handle handle, int mode) = nullptr;
  const char* (*status_string)(int status) = nullptr;
  int (*product)(Handle handle, int form_a, int form_b, int m, int n, int k, Scalar alpha,
                 const void* a, int type_a, int step_a, const void* b, int type_b, int step_b,
                 Scalar beta, void* c, int type_c, int step_c, int compute,
                 int algorithm) = nullptr;
  int (*products)(Handle handle, int form_a, int form_b, int m, int n, int k, Scalar alpha,
                  const void* a, int type_a, int step_a, long long next_a, const void* b,
                  int type_b, int step_b, long long next_b, Scalar beta, void* c, int type_c,
                  int step_c, long long next_c, int batch, int compute, int algorithm) = nullptr;
};

namespace {

// Calls cuBLAS. Its matrices are the transposes of ours, so it computes c' = b' a'.
class Product : public runtime::Program {
 public:
  Product(const runtime::KernelSource& source, std::shared_ptr<Cublas::Library> library,
          Context& context)
      : label_(label_of(source)),
        product_(*source.product),
        a_(product_.a, product_.a.strides[2], product_.a.strides[1]),
        b_(product_.b, product_.b.strides[2], product_.b.strides[1]),
        c_(product_.c, product_.c.strides[2], product_.c.strides[1]),
        library_(std::move(library)),
        context_(context) {
    RUNE_CHECK(c_.form == kAsStored, "a product is not stored row by row");
  }

  void launch(const runtime::LaunchArguments& arguments) override {
    const MatrixProduct& p = product_;
    const auto at = [&](const MatrixProduct::Matrix& matrix, DType dtype) {
      return static_cast<char*>(arguments.buffers[matrix.argument]) +
             matrix.offset * size_of(dtype);
    };
    const int rows = static_cast<int>(p.rows), columns = static_cast<int>(p.columns);
    const int terms = static_cast<int>(p.terms), batch = static_cast<int>(p.batch);
    const int operands = data_type(p.operands), result = data_type(p.result);
    const bool is_double = p.operands == DType::Float64;
    const int compute = is_double ? kComputeFloat64 : kComputeFloat32;
    constexpr double kDoubles[] = {0, 1};
    constexpr float kFloats[] = {0, 1};
    const auto scalar = [&](int value) {
      return is_double ? static_cast<const void*>(&kDoubles[value]) : &kFloats[value];
    };
    void* const a = at(p.a, p.operands);
    void* const b = at(p.b, p.operands);
    void* const c = at(p.c, p.result);
    const Context::Scope scope(context_);
    const std::lock_guard<std::mutex> lock(library_->mutex);
    const int status =
        batch == 1
            ? library_->product(library_->handle, b_.form, a_.form, columns, rows, terms, scalar(1),
                                b, operands, b_.column_step, a, operands, a_.column_step, scalar(0),
                                c, result, c_.column_step, compute, kDefaultAlgorithm)
            : library_->products(library_->handle, b_.form, a_.form, columns, rows, terms,
                                 scalar(1), b, operands, b_.column_step, p.b.strides[0], a,
                                 operands, a_.column_step, p.a.strides[0], scalar(0), c, result,
                                 c_.column_step, p.c.strides[0], batch, compute, kDefaultAlgorithm);
    context_.check_launch(kSuccess, label_);
    if (status != 0)
      user_error(ErrorKind::Runtime, "cuda: cannot compute product ", *label_, " by cuBLAS (",
                 library_->status_string(status), ")\nhint: RUNE_JIT_CUBLAS=off avoids cuBLAS");
  }

 private:
  const std::shared_ptr<const std::string> label_;  // the name, and the user's line
  const MatrixProduct product_;
  const Stored a_, b_, c_;  // transposed
  const std::shared_ptr<Cublas::Library> library_;
  Context& context_;
};

}  // namespace

std::vector<std::string> cublas_files(int driver_version) {
  const std::string& chosen = options().cublas;
  if (chosen == "off") return {};
  if (!chosen.empty()) return {chosen};
  std::vector<std::string> files;
  if (!services().cublas_files) return files;
  for (std::string& file : services().cublas_files()) {
    const size_t major = file.rfind(".so.");
    if (major != std::string::npos && std::stoi(file.substr(major + 4)) <= driver_version / 1000)
      files.push_back(std::move(file));
  }
  return files;
}

std::shared_ptr<runtime::Program> Cublas::program(const runtime::KernelSource& source) {
  std::call_once(once_, [&] {
    const Context::Scope scope(context_);
    for (const std::string& file : cublas_files(driver().version)) {
      auto library = std::make_shared<Library>(file);
      if (!library->start(context_.stream())) continue;
      library_ = std::move(library);
      return;
    }
  });
  return library_ ? std::make_shared<Product>(source, library_, context_) : nullptr;
}

}  // namespace rune::cuda
