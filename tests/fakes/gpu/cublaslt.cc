// A made-up cuBLASLt: the calls that kernels/gpu makes, for its types and column-major layouts, by plain
// loops. A library of its own, since it is looked for at run time.
//
// MUSTER_FAKE_BAD_PRODUCT_GPU: number of a GPU whose products have one wrong element.
// MUSTER_FAKE_GUESSES: how many algorithms it has to offer (2); 0: none, as for a type that a GPU does not
// have.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/cpu/exact.h"

using namespace muster::kernels::gpu;

namespace {

struct Operation {
  bool transpose_a = false, transpose_b = false;
};
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading, batch_stride = 0;
  int32_t batch = 1;
};
template <typename T, typename Opaque>
T& in(Opaque* handle) {
  return *reinterpret_cast<T*>(handle);
}

size_t bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_16BF:
    case CUDA_R_16F:
      return 2;
    default:
      return 1;
  }
}
double get(const void* m, const Layout& l, uint64_t row, uint64_t column, int32_t batch) {
  const auto at = static_cast<size_t>(column) * static_cast<size_t>(l.leading) + row +
                  static_cast<size_t>(batch) * static_cast<size_t>(l.batch_stride);
  switch (l.type) {
    case CUDA_R_16BF:
      return from_bf16(static_cast<const uint16_t*>(m)[at]);
    case CUDA_R_16F: {
      const uint16_t bits = static_cast<const uint16_t*>(m)[at];
      // Small integers only, as in exact products: their halves are normal numbers.
      if ((bits & 0x7fff) == 0) return 0;
      const double value = (1.0 + (bits & 1023) / 1024.0) * static_cast<double>(1u << 15) /
                           static_cast<double>(1u << (30 - (bits >> 10 & 31)));
      return bits & 0x8000 ? -value : value;
    }
    case CUDA_R_8F_E4M3:
      return from_e4m3(static_cast<const uint8_t*>(m)[at]);
    case CUDA_R_8I:
      return static_cast<const int8_t*>(m)[at];
    case CUDA_R_64F:
      return static_cast<const double*>(m)[at];
    case CUDA_R_32I:
      return static_cast<const int32_t*>(m)[at];
    default:
      return static_cast<const float*>(m)[at];
  }
}
void put(void* m, const Layout& l, uint64_t row, uint64_t column, int32_t batch, double value) {
  const auto at = static_cast<size_t>(column) * static_cast<size_t>(l.leading) + row +
                  static_cast<size_t>(batch) * static_cast<size_t>(l.batch_stride);
  switch (l.type) {
    case CUDA_R_16BF:
      static_cast<uint16_t*>(m)[at] = to_bf16(static_cast<float>(value));
      break;
    case CUDA_R_16F:
      static_cast<uint16_t*>(m)[at] = to_fp16(static_cast<float>(value));
      break;
    case CUDA_R_64F:
      static_cast<double*>(m)[at] = value;
      break;
    case CUDA_R_32I:
      static_cast<int32_t*>(m)[at] = static_cast<int32_t>(value);
      break;
    default:
      static_cast<float*>(m)[at] = static_cast<float>(value);
  }
}
double scalar(const void* p, cudaDataType type) {
  if (type == CUDA_R_64F) return *static_cast<const double*>(p);
  return type == CUDA_R_32I ? static_cast<double>(*static_cast<const int32_t*>(p))
                            : static_cast<double>(*static_cast<const float*>(p));
}

bool is_bad() {
  const char* text = std::getenv("MUSTER_FAKE_BAD_PRODUCT_GPU");
  int device = -1;
  return text && cudaGetDevice(&device) == cudaSuccess && std::atoi(text) == device;
}

std::vector<double> matrix(const void* m, const Layout& l, bool transposed,
                           int32_t batch) {  // row-major, as the product wants it
  const uint64_t rows = transposed ? l.columns : l.rows, columns = transposed ? l.rows : l.columns;
  std::vector<double> out(rows * columns);
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j)
      out[i * columns + j] = transposed ? get(m, l, j, i, batch) : get(m, l, i, j, batch);
  return out;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* out) {
  *out = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion(void) { return 1; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "made-up error";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t, cudaDataType_t) {
  *out = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  delete reinterpret_cast<Operation*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t what, const void* value,
                                              size_t) {
  const bool yes = *static_cast<const cublasOperation_t*>(value) == CUBLAS_OP_T;
  if (what == CUBLASLT_MATMUL_DESC_TRANSA)
    in<Operation>(handle).transpose_a = yes;
  else if (what == CUBLASLT_MATMUL_DESC_TRANSB)
    in<Operation>(handle).transpose_b = yes;
  else
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *out = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  delete reinterpret_cast<Layout*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t what, const void* value,
                                                size_t) {
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    std::memcpy(&in<Layout>(handle).batch, value, sizeof(int32_t));
  else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    std::memcpy(&in<Layout>(handle).batch_stride, value, sizeof(int64_t));
  else
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  *out = reinterpret_cast<cublasLtMatmulPreference_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* out, int* found) {
  const char* text = std::getenv("MUSTER_FAKE_GUESSES");
  *found = std::min(wanted, text ? std::atoi(text) : 2);
  for (int i = 0; i < *found; ++i) out[i] = {}, out[i].state = CUBLAS_STATUS_SUCCESS;
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  const auto& op = in<Operation>(operation);
  const auto &la = in<Layout>(a_layout), &lb = in<Layout>(b_layout), &ld = in<Layout>(d_layout);
  const cudaDataType scale = ld.type == CUDA_R_64F || ld.type == CUDA_R_32I ? ld.type : CUDA_R_32F;
  const double times = scalar(alpha, scale), keep = scalar(beta, scale);
  const uint64_t depth = op.transpose_a ? la.rows : la.columns;
  if ((op.transpose_b ? lb.columns : lb.rows) != depth ||
      (op.transpose_a ? la.columns : la.rows) != ld.rows ||
      (op.transpose_b ? lb.rows : lb.columns) != ld.columns || la.batch != ld.batch || lb.batch != ld.batch)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (int32_t batch = 0; batch < ld.batch; ++batch) {
    const auto x = matrix(a, la, op.transpose_a, batch),
               y = matrix(b, lb, !op.transpose_b, batch);  // y: a row per column of B
    for (uint64_t i = 0; i < ld.rows; ++i)
      for (uint64_t j = 0; j < ld.columns; ++j) {
        double sum = 0;
        for (uint64_t k = 0; k < depth; ++k) sum += x[i * depth + k] * y[j * depth + k];
        if (is_bad() && i == 1 && j == 1) sum += 1;
        put(d, ld, i, j, batch, times * sum + (keep == 0 ? 0 : keep * get(d, ld, i, j, batch)));
      }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
