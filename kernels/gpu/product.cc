#include "kernels/gpu/product.h"

#include <fmt/format.h>

namespace muster::kernels::gpu {
namespace {

Reading reading_of_input(Format format) {
  switch (format) {
    case Format::bf16:
      return Reading::bf16;
    case Format::fp16:
      return Reading::fp16;
    case Format::tf32:
      return Reading::f32;
    case Format::fp8:
      return Reading::fp8;
    case Format::int8:
      return Reading::int8;
    case Format::fp64:
      return Reading::f64;
  }
  return Reading::f32;
}
Reading reading_of_exact_result(Format format) {
  if (format == Format::int8) return Reading::int32;
  return format == Format::fp64 ? Reading::f64 : Reading::f32;
}
Words words_of_result(Format format, bool exact) {
  if (format == Format::int8) return Words::integer;
  if (format == Format::fp64) return Words::f64;
  if (exact || format == Format::tf32) return Words::f32;
  return format == Format::fp16 ? Words::fp16 : Words::bf16;  // an fp8 product is stored as bf16
}
size_t input_bytes(Format format) {
  for (const auto& info : formats())
    if (info.format == format) return info.bytes;
  return 8;
}

}  // namespace

Result<Maker> choose_maker(const std::string& word, Format format, const Gpu& gpu) {
  const Maker own = own_kernel(format, gpu.major, gpu.minor);
  if (word == "cublaslt") return Maker::library;
  if (word == "auto")
    return own != Maker::library && proven(own, gpu.major, gpu.minor) ? own : Maker::library;
  if (word != "own")
    return fail(Code::invalid, fmt::format("'{}' is not one of auto, own and cublaslt", word));
  if (own == Maker::library)
    return fail(Code::unavailable,
                fmt::format("muster has no kernel of its own for this format on compute capability {}.{}",
                            gpu.major, gpu.minor));
  return own;
}

Result<ProductBench> ProductBench::open(Maker maker, Format format, size_t n, bool exact) {
  if (!edge_fits(maker, n))
    return fail(Code::invalid,
                fmt::format("a matrix edge of {} is not supported by {}", n, to_string(maker)));
  TRY(CudaStream stream, CudaStream::open());
  ProductBench out(std::move(stream));
  out.maker_ = maker;
  out.format_ = format;
  out.n_ = n;
  out.exact_ = exact;
  TRY(out.a_, device_memory(n * n * input_bytes(format)));
  TRY(out.b_, device_memory(n * n * input_bytes(format)));
  TRY(out.c_, device_memory(n * n * result_bytes(format, exact)));
  if (maker == Maker::library) {
    TRY(Cublaslt library, Cublaslt::open(format, n, exact));
    out.library_.emplace(std::move(library));
  }
  return out;
}

Status ProductBench::fill_inputs(uint64_t seed, int most) {
  Fill what{format_, n_, n_, false, seed, 0, most};
  TRY_(cuda(fill(a_.get(), what, stream()), "fill A"));
  what.transposed = true;  // B's element (k, j) is number k n + j, and it lies at row j
  what.first = uint64_t{n_} * n_;
  return cuda(fill(b_.get(), what, stream()), "fill B");
}

Status ProductBench::tune() {
  return library_ ? library_->tune(a_.get(), b_.get(), c_.get(), stream()) : Status(Ok{});
}

Status ProductBench::multiply(Counts* digest, int rotation, const ProductFault& fault) {
  if (library_) return library_->multiply(a_.get(), b_.get(), c_.get(), stream());
  Product p;
  p.a = a_.get(), p.b = b_.get(), p.c = c_.get();
  p.m = p.n = p.k = static_cast<int>(n_);
  p.format = format_;
  p.exact = exact_;
  p.digest = digest;
  p.rotation = rotation;
  p.fault = fault.where;
  p.element = fault.element % (n_ * n_);
  p.bit = fault.bit;
  return cuda(maker_ == Maker::hopper ? multiply_hopper(p, stream()) : multiply_mma(p, stream()),
              "own product");
}

Status ProductBench::digest_memory(Counts* digest) {
  const size_t words = n_ * n_ * result_bytes(format_, exact_) / 4;
  return cuda(gpu::digest(c_.get(), words, words_of_result(format_, exact_), digest, stream()), "digest");
}

Status ProductBench::flip_input(bool second, size_t element, unsigned bit) {
  const size_t bytes = input_bytes(format_), at = bit % (8 * bytes);
  return cuda(flip_bit(second ? b_.get() : a_.get(), element % (n_ * n_) * bytes + at / 8,
                       static_cast<unsigned>(at % 8), stream()),
              "flip");
}

Status ProductBench::flip_output(size_t element, unsigned bit) {
  const size_t bytes = result_bytes(format_, exact_), at = bit % (8 * bytes);
  return cuda(
      flip_bit(c_.get(), element % (n_ * n_) * bytes + at / 8, static_cast<unsigned>(at % 8), stream()),
      "flip");
}

// Compares C x with A (B x): B is stored transposed, so B x is a sum along its columns.
Result<bool> ProductBench::freivalds(uint64_t seed) {
  const size_t vector = n_ * sizeof(long long);
  TRY(const DeviceMemory memory, device_memory(3 * vector + 3 * sizeof(unsigned long long)));
  auto* bx = static_cast<long long*>(memory.get());
  auto *abx = bx + n_, *cx = abx + n_;
  auto* odd = reinterpret_cast<unsigned long long*>(cx + n_);
  TRY_(cuda(cudaMemsetAsync(memory.get(), 0, 3 * vector + 2 * sizeof(unsigned long long), stream()),
            "cudaMemsetAsync"));
  TRY_(cuda(cudaMemsetAsync(odd + 2, 0xff, sizeof(unsigned long long), stream()), "cudaMemsetAsync"));
  const Reading input = reading_of_input(format_), result = reading_of_exact_result(format_);
  TRY_(cuda(transposed_times_signs(b_.get(), input, n_, n_, seed, bx, odd, stream()), "B x"));
  TRY_(cuda(times_vector(a_.get(), input, n_, n_, bx, seed, abx, odd, stream()), "A (B x)"));
  TRY_(cuda(times_vector(c_.get(), result, n_, n_, nullptr, seed, cx, odd, stream()), "C x"));
  TRY_(cuda(compare(abx, cx, n_, odd + 1, odd + 2, stream()), "compare"));
  unsigned long long counts[2] = {1, 1};
  TRY_(
      cuda(cudaMemcpyAsync(counts, odd, sizeof counts, cudaMemcpyDeviceToHost, stream()), "cudaMemcpyAsync"));
  TRY_(wait());
  return counts[0] == 0 && counts[1] == 0;
}

Json ProductBench::describe(const Gpu& gpu) const {
  Json out = {{"made_by", to_string(maker_)}, {"n", n_}};
  if (library_) {
    out["cublaslt_version"] = library_->version();
    out["cublaslt_library"] = library_->path();
  }
  if (!proven(maker_, gpu.major, gpu.minor))
    out["unproven"] = "this kernel was not tested on this GPU model before its release";
  return out;
}

Result<DigestSlots> DigestSlots::open(size_t count) {
  DigestSlots out;
  out.count_ = count;
  TRY(out.memory_, device_memory(count * sizeof(Counts)));
  return out;
}
Status DigestSlots::clear(cudaStream_t stream) {
  return cuda(cudaMemsetAsync(memory_.get(), 0, count_ * sizeof(Counts), stream), "cudaMemsetAsync");
}
Result<std::vector<Counts>> DigestSlots::read(cudaStream_t stream) {
  std::vector<Counts> out(count_);
  TRY_(cuda(
      cudaMemcpyAsync(out.data(), memory_.get(), count_ * sizeof(Counts), cudaMemcpyDeviceToHost, stream),
      "cudaMemcpyAsync"));
  TRY_(cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize"));
  return out;
}

}  // namespace muster::kernels::gpu
