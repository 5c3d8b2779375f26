#include "kernels/gpu/cublaslt.h"

#include <cublasLt.h>

#include <algorithm>
#include <fmt/format.h>

#include "base/cuda_driver.h"

namespace muster::kernels::gpu {
namespace {

constexpr int kGuesses = 8;

// The library functions in use, under their original names.
struct Functions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) status_text = nullptr;
  decltype(&cublasLtMatmulDescCreate) operation_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) operation_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) operation_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) guess = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

Status find_all(const Library& library, Functions& f) {
  TRY_(library.find("cublasLtCreate", f.create));
  TRY_(library.find("cublasLtDestroy", f.destroy));
  TRY_(library.find("cublasLtGetVersion", f.version));
  TRY_(library.find("cublasLtGetStatusString", f.status_text));
  TRY_(library.find("cublasLtMatmulDescCreate", f.operation_create));
  TRY_(library.find("cublasLtMatmulDescDestroy", f.operation_destroy));
  TRY_(library.find("cublasLtMatmulDescSetAttribute", f.operation_set));
  TRY_(library.find("cublasLtMatrixLayoutCreate", f.layout_create));
  TRY_(library.find("cublasLtMatrixLayoutDestroy", f.layout_destroy));
  TRY_(library.find("cublasLtMatrixLayoutSetAttribute", f.layout_set));
  TRY_(library.find("cublasLtMatmulPreferenceCreate", f.preference_create));
  TRY_(library.find("cublasLtMatmulPreferenceDestroy", f.preference_destroy));
  TRY_(library.find("cublasLtMatmulPreferenceSetAttribute", f.preference_set));
  TRY_(library.find("cublasLtMatmulAlgoGetHeuristic", f.guess));
  TRY_(library.find("cublasLtMatmul", f.matmul));
  return Ok{};
}

struct Types {
  cudaDataType_t input = CUDA_R_16BF, output = CUDA_R_32F, scale = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
Types types_of(Format format, bool exact) {
  switch (format) {
    case Format::bf16:
      return {CUDA_R_16BF, exact ? CUDA_R_32F : CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Format::fp16:
      return {CUDA_R_16F, exact ? CUDA_R_32F : CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Format::tf32:
      return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case Format::fp8:
      return {CUDA_R_8F_E4M3, exact ? CUDA_R_32F : CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Format::int8:
      return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
    case Format::fp64:
      return {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  }
  return {};
}

}  // namespace

size_t result_bytes(Format format, bool exact) {
  const cudaDataType_t type = types_of(format, exact).output;
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F || type == CUDA_R_32I ? 4 : 2;
}

struct Cublaslt::State {
  Functions f;
  std::string path;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, result = nullptr;  // of A, B and C
  DeviceMemory own_workspace;
  void* workspace = nullptr;
  uint32_t alignment = 256;  // in bytes, of every operand; that of cudaMalloc
  std::vector<cublasLtMatmulHeuristicResult_t> guesses;
  size_t chosen = 0;
  cudaDataType_t scale = CUDA_R_32F;
  bool add = false;

  ~State() {
    for (const auto layout : {result, right, left})
      if (layout) f.layout_destroy(layout);
    if (operation) f.operation_destroy(operation);
    if (handle) f.destroy(handle);
  }
  Status check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return Ok{};
    const bool absent = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
    return fail(absent ? Code::unavailable : Code::failed,
                fmt::format("{}: {}", what, f.status_text(status)));
  }
  Status prepare(const Types& types, const BlockProduct& product);
  Status layout(cublasLtMatrixLayout_t& out, cudaDataType_t type, size_t rows, size_t columns, size_t row,
                size_t batches, size_t step) const;
  Status query_limits();
  Status run(const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, void* c,
             cudaStream_t stream) const;
};

// Describes a row-major matrix [rows][columns] in cuBLAS's column-major terms: columns x rows.
Status Cublaslt::State::layout(cublasLtMatrixLayout_t& out, cudaDataType_t type, size_t rows, size_t columns,
                               size_t row, size_t batches, size_t step) const {
  TRY_(check(f.layout_create(&out, type, columns, rows, static_cast<int64_t>(row)),
             "cublasLtMatrixLayoutCreate"));
  if (batches == 1) return Ok{};
  const auto count = static_cast<int32_t>(batches);
  const auto offset = static_cast<int64_t>(step);
  TRY_(check(f.layout_set(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "BATCH_COUNT"));
  return check(f.layout_set(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset),
               "STRIDED_BATCH_OFFSET");
}

// Expresses a row-major product in column-major terms: C^T = op(B)^T op(A)^T. So the first operand is B, the
// second A, and an operand that is not turned is not transposed for cuBLAS either.
Status Cublaslt::State::prepare(const Types& types, const BlockProduct& p) {
  scale = types.scale;
  add = p.add;
  TRY_(check(f.create(&handle), "cublasLtCreate"));
  TRY_(check(f.operation_create(&operation, types.compute, types.scale), "cublasLtMatmulDescCreate"));
  const cublasOperation_t first = p.b_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                          second = p.a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
  TRY_(check(f.operation_set(operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first), "TRANSA"));
  TRY_(check(f.operation_set(operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second), "TRANSB"));
  TRY_(layout(left, types.input, p.a_turned ? p.k : p.m, p.a_turned ? p.m : p.k, p.a_row, p.batches,
              p.a_step));
  TRY_(layout(right, types.input, p.b_turned ? p.n : p.k, p.b_turned ? p.k : p.n, p.b_row, p.batches,
              p.b_step));
  TRY_(layout(result, types.output, p.m, p.n, p.c_row, p.batches, p.c_step));
  if (!workspace) {
    TRY(own_workspace, device_memory(kCublasltWorkspace));
    workspace = own_workspace.get();
  }
  return query_limits();
}

Status Cublaslt::State::query_limits() {
  cublasLtMatmulPreference_t preference = nullptr;
  TRY_(check(f.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  const size_t bytes = kCublasltWorkspace;
  const uint32_t no_split = CUBLASLT_REDUCTION_SCHEME_NONE;
  int found = 0;
  guesses.resize(kGuesses);
  Status status =
      check(f.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
            "workspace");
  if (status)
    status = check(
        f.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &no_split, sizeof no_split),
        "reduction");
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    if (status)
      status = check(f.preference_set(preference, which, &alignment, sizeof alignment), "alignment");
  if (status)
    status = check(
        f.guess(handle, operation, right, left, result, result, preference, kGuesses, guesses.data(), &found),
        "cublasLtMatmulAlgoGetHeuristic");
  f.preference_destroy(preference);
  TRY_(std::move(status));
  guesses.resize(static_cast<size_t>(std::max(found, 0)));
  std::erase_if(guesses, [](const auto& guess) { return guess.state != CUBLAS_STATUS_SUCCESS; });
  if (guesses.empty())
    return fail(Code::unavailable, "cuBLASLt has no algorithm for this product on this GPU");
  return Ok{};
}

Status Cublaslt::State::run(const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, void* c,
                            cudaStream_t stream) const {
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const int32_t one32 = 1, zero32 = 0;
  const void *alpha = &one, *beta = add ? &one : &zero;
  if (scale == CUDA_R_64F) alpha = &one64, beta = &zero64;
  if (scale == CUDA_R_32I) alpha = &one32, beta = &zero32;
  return check(f.matmul(handle, operation, alpha, b, right, a, left, beta, c, result, c, result, &algorithm,
                        workspace, kCublasltWorkspace, stream),
               "cublasLtMatmul");
}

Cublaslt::Cublaslt(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cublaslt::Cublaslt(Cublaslt&&) noexcept = default;
Cublaslt::~Cublaslt() = default;

std::string Cublaslt::library_name() { return cublaslt_of(CUBLAS_VER_MAJOR); }

Result<std::unique_ptr<Cublaslt::State>> Cublaslt::load() {
  TRY(const Library library, Library::open(library_name()));
  auto state = std::make_unique<State>();
  TRY_(find_all(library, state->f));
  state->path = library.path();
  return state;
}

Result<Cublaslt> Cublaslt::open(Format format, size_t n, bool exact) {
  TRY(auto state, load());
  BlockProduct square{n, n, n, false, true, n, n, n};
  TRY_(state->prepare(types_of(format, exact), square));
  return Cublaslt(std::move(state));
}

Result<Cublaslt> Cublaslt::open(const BlockProduct& product, void* workspace) {
  TRY(auto state, load());
  state->workspace = workspace;
  state->alignment = 16;  // attention heads lie side by side: aligned to a few elements only
  TRY_(state->prepare(types_of(Format::bf16, true), product));
  return Cublaslt(std::move(state));
}

Status Cublaslt::tune(const void* a, const void* b, void* c, cudaStream_t stream) {
  TRY(Timer timer, Timer::open());
  double best = 1e300;
  bool any = false;
  for (size_t i = 0; i < state_->guesses.size(); ++i) {
    const auto& algorithm = state_->guesses[i].algo;
    if (!state_->run(algorithm, a, b, c, stream)) continue;  // a suggestion may fail; the next one is tried
    TRY_(timer.start(stream));
    for (int k = 0; k < 3; ++k) TRY_(state_->run(algorithm, a, b, c, stream));
    TRY(const double seconds, timer.stop(stream));
    if (seconds < best) best = seconds, state_->chosen = i;
    any = true;
  }
  return any ? Status(Ok{})
             : Status(fail(Code::unavailable, "none of cuBLASLt's algorithms runs on this GPU"));
}

Status Cublaslt::multiply(const void* a, const void* b, void* c, cudaStream_t stream) const {
  return state_->run(state_->guesses[state_->chosen].algo, a, b, c, stream);
}

size_t Cublaslt::version() const { return state_->f.version(); }
std::string Cublaslt::path() const { return state_->path; }

}  // namespace muster::kernels::gpu
