// What the GPU kernels decide on the host, and the arithmetic both sides share.
#include "kernels/gpu/logic/gpu_logic.h"

#include <cmath>
#include <cstring>
#include <set>

#include "kernels/cpu/exact.h"
#include "tests/catch.h"

using namespace muster::kernels;
using namespace muster::kernels::gpu;

TEST_CASE("gpu: the inputs are those of the CPU reference", "[gpu]") {
  const sdc::Inputs inputs = sdc::make_inputs(16, 42);
  for (size_t i = 0; i < 256; ++i) {
    CHECK(inputs.a[i] == to_bf16(static_cast<float>(integer_at(42, i, 7))));
    CHECK(inputs.b[i] == to_bf16(static_cast<float>(integer_at(42, 256 + i, 7))));
  }
  CHECK(golden_product(16, 42, 7, Format::bf16, 3) == sdc::golden(16, 42));
  CHECK(golden_product(16, 42, 7, Format::bf16, 100) == sdc::golden(16, 42));
  CHECK(golden_product(16, 43, 7, Format::bf16, 1) != sdc::golden(16, 42));
}

TEST_CASE("gpu: golden digests are of the bits that each format stores", "[gpu]") {
  // One product of 2 x 2, worked out here.
  int a[4], b[4];
  for (int i = 0; i < 4; ++i)
    a[i] = integer_at(9, static_cast<uint64_t>(i), 3), b[i] = integer_at(9, static_cast<uint64_t>(4 + i), 3);
  sdc::Digest single, integer, wide;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const int sum = a[2 * i] * b[j] + a[2 * i + 1] * b[2 + j];
      const auto at = static_cast<uint64_t>(2 * i + j);
      single.add(at, bits_of_float(static_cast<float>(sum)));
      integer.add(at, static_cast<uint32_t>(sum));
      uint64_t bits;
      const double value = sum;
      std::memcpy(&bits, &value, 8);
      wide.add(2 * at, static_cast<uint32_t>(bits));
      wide.add(2 * at + 1, static_cast<uint32_t>(bits >> 32));
    }
  CHECK(golden_product(2, 9, 3, Format::fp16, 1) == single);
  CHECK(golden_product(2, 9, 3, Format::fp8, 1) == single);
  CHECK(golden_product(2, 9, 3, Format::int8, 1) == integer);
  CHECK(golden_product(2, 9, 3, Format::fp64, 2) == wide);
}

TEST_CASE("gpu: e4m3 to the last of its 256 values, and the nearest for others", "[gpu]") {
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<uint8_t>(bits);
    const float value = from_e4m3(byte);
    if (std::isnan(value)) {
      CHECK((byte & 0x7f) == 0x7f);
      CHECK((to_e4m3(value) & 0x7f) == 0x7f);
    } else {
      CHECK(to_e4m3(value) == byte);
    }
  }
  for (int i = -7; i <= 7; ++i) CHECK(from_e4m3(to_e4m3(static_cast<float>(i))) == static_cast<float>(i));
  CHECK(from_e4m3(0x7e) == 448);
  CHECK(from_e4m3(0x01) == std::ldexp(1.0f, -9));
  CHECK(from_e4m3(0x08) == std::ldexp(1.0f, -6));
  CHECK(to_e4m3(1000) == 0x7e);
  CHECK(to_e4m3(-1000) == 0xfe);
  for (uint64_t i = 0; i < 5000; ++i) {  // no other value is nearer
    const float value = uniform_at(3, i) * (i % 2 ? 1.0f : 0.01f), got = from_e4m3(to_e4m3(value));
    const auto byte = to_e4m3(value);
    for (const int other : {byte - 1, byte + 1})
      if (const float near = from_e4m3(static_cast<uint8_t>(other)); !std::isnan(near))
        CHECK(std::fabs(got - value) <= std::fabs(near - value));
  }
  // Ties go to the even one: 1.0625 lies between 1.0 (even) and 1.125.
  CHECK(from_e4m3(to_e4m3(1.0625f)) == 1.0f);
  CHECK(from_e4m3(to_e4m3(1.1875f)) == 1.25f);
}

TEST_CASE("gpu: bf16 and fp16 are exact for small integers and round to even", "[gpu]") {
  for (int i = -127; i <= 127; ++i) CHECK(from_bf16(to_bf16(static_cast<float>(i))) == static_cast<float>(i));
  CHECK(to_bf16(float_of_bits(0x3f808000)) == 0x3f80);  // a tie, down to even
  CHECK(to_bf16(float_of_bits(0x3f818000)) == 0x3f82);  // a tie, up to even
  CHECK(to_bf16(float_of_bits(0x3f808001)) == 0x3f81);
  CHECK(not_finite_bf16(to_bf16(std::nanf(""))));
  CHECK(not_finite_bf16(to_bf16(INFINITY)));
  CHECK_FALSE(not_finite_bf16(to_bf16(3e38f)));
  CHECK(to_fp16(0) == 0);
  CHECK(to_fp16(-0.0f) == 0x8000);
  CHECK(to_fp16(1) == 0x3c00);
  CHECK(to_fp16(-2) == 0xc000);
  CHECK(to_fp16(65504) == 0x7bff);
  CHECK(to_fp16(65519) == 0x7bff);
  CHECK(to_fp16(65520) == 0x7c00);
  CHECK(to_fp16(std::ldexp(1.0f, -24)) == 1);
  CHECK(to_fp16(std::ldexp(1.0f, -26)) == 0);
  CHECK(to_fp16(std::nextafter(std::ldexp(1.0f, -25), 1.0f)) == 1);
  CHECK(to_fp16(2049) == to_fp16(2048));  // a tie
  CHECK(not_finite_fp16(to_fp16(INFINITY)));
  CHECK_FALSE(not_finite_fp16(to_fp16(65504)));
}

TEST_CASE("gpu: no result that is no number escapes by its bits", "[gpu]") {
  CHECK(not_finite_f32(0x7f800000));
  CHECK(not_finite_f32(0xffc00000));
  CHECK(not_finite_f32(0x7f800001));
  CHECK_FALSE(not_finite_f32(0x7f7fffff));
  CHECK(not_finite_f64(0x7ff0000000000000u));
  CHECK(not_finite_f64(0xfff8000000000000u));
  CHECK_FALSE(not_finite_f64(0x7fefffffffffffffu));
}

TEST_CASE("gpu: integers are as large as every accumulator can hold exactly", "[gpu]") {
  CHECK(exact_most(Format::bf16, Maker::hopper, 16384) == 7);
  CHECK(exact_most(Format::bf16, Maker::library, 65536) == 7);
  CHECK(exact_most(Format::fp8, Maker::hopper, 8192) == 7);   // 128 x 49 = 6272 < 2^13
  CHECK(exact_most(Format::fp8, Maker::library, 4096) == 1);  // 4096 < 2^13
  CHECK(exact_most(Format::fp8, Maker::library, 8192) == 0);
  CHECK(exact_most(Format::int8, Maker::library, 16384) == 7);
  CHECK(exact_most(Format::fp64, Maker::library, 16384) == 7);
  CHECK(exact_most(Format::tf32, Maker::library, 4096) == 7);
}

TEST_CASE("gpu: own kernels are never taken by themselves before they were proven", "[gpu]") {
  CHECK(own_kernel(Format::bf16, 9, 0) == Maker::hopper);
  CHECK(own_kernel(Format::fp8, 9, 0) == Maker::hopper);
  CHECK(own_kernel(Format::bf16, 8, 0) == Maker::mma);
  CHECK(own_kernel(Format::fp8, 8, 0) == Maker::library);  // the instruction came with 8.9
  CHECK(own_kernel(Format::fp8, 8, 9) == Maker::mma);
  CHECK(own_kernel(Format::bf16, 12, 0) == Maker::mma);
  CHECK(own_kernel(Format::bf16, 7, 5) == Maker::library);
  for (const auto& info : formats())
    for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {9, 0}, {10, 0}, {12, 0}}) {
      const Maker own = own_kernel(info.format, major, minor);
      CHECK(proven(Maker::library, major, minor));
      if (own != Maker::library) CHECK(proven(own, major, minor) == (own == Maker::hopper));
      CHECK(find_format(info.name) == &info);
    }
  CHECK(find_format("fp4") == nullptr);
  CHECK(edge_fits(Maker::library, 4096 + 16));
  CHECK_FALSE(edge_fits(Maker::mma, 4096 + 16));
  CHECK_FALSE(edge_fits(Maker::hopper, 0));
  CHECK_FALSE(can_flip(sdc::Site::accumulator, Maker::library));
  CHECK(can_flip(sdc::Site::accumulator, Maker::mma));
  CHECK(can_flip(sdc::Site::output_memory, Maker::library));
}

TEST_CASE("gpu: a series tells throttling from noise", "[gpu]") {
  std::vector<double> falling;
  for (int i = 0; i < 100; ++i) falling.push_back(i < 50 ? 700 : 560);
  const Series series = summarise(falling);
  CHECK(series.drift == Approx(0.8));
  CHECK(series.slowest_ratio == Approx(560.0 / 630).margin(0.1));
  CHECK(series.json(10).size() == 10);
  CHECK(series.json(10)[0] == 700);
  CHECK(series.json(10)[9] == 560);
  CHECK(summarise({5}).drift == Approx(1));
  CHECK(summarise({}).json(5).empty());
}

TEST_CASE("gpu: nvidia-smi's tables are read, also where a GPU does not tell", "[gpu]") {
  auto gpus = parse_smi(
      "uuid, serial, name, pci.bus_id, driver_version, ecc.errors.corrected.volatile.total, "
      "ecc.errors.uncorrected.volatile.total, clocks.current.sm [MHz], power.draw [W], temperature.memory, "
      "clocks_event_reasons.active, pcie.link.gen.current\r\n"
      "GPU-0a, 1654123456789, NVIDIA H200, 00000000:18:00.0, 580.95.05, 3, 0, 1980 MHz, 691.25, 71, "
      "0x0000000000000004, 5\r\n"
      "GPU-0b, [N/A], NVIDIA H200, 00000000:2A:00.0, 580.95.05, [N/A], [Not Supported], 345, [Unknown "
      "Error], N/A, 0x0, 5\n"
      "cut off, line\n");
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].serial == "1654123456789");
  CHECK(gpus[0].numbers.at("ecc.errors.corrected.volatile.total") == 3);
  CHECK(gpus[0].numbers.at("power.draw") == Approx(691.25));
  CHECK(gpus[0].numbers.at("clocks_throttle_reasons.active") == 4);
  CHECK(gpus[0].numbers.count("clocks.sm") == 0);  // units were not to be printed: a word is not guessed at
  CHECK(gpus[1].numbers.at("clocks.sm") == 345);
  CHECK(gpus[1].serial.empty());
  CHECK(gpus[1].numbers.count("ecc.errors.corrected.volatile.total") == 0);
  CHECK(gpus[1].numbers.count("temperature.memory") == 0);
  // What it does not have is not told; an error, or a number that is gone, is no such thing.
  CHECK(not_reported(gpus[1], gpus[1], "ecc.errors.corrected.volatile.total").empty());
  CHECK(not_reported(gpus[1], gpus[1], "power.draw").find("[Unknown Error]") != std::string::npos);
  CHECK_FALSE(not_reported(gpus[0], gpus[1], "ecc.errors.uncorrected.volatile.total").empty());
  merge_smi(gpus, parse_smi("gpu_uuid, remapped_rows.correctable, remapped_rows.uncorrectable, "
                            "remapped_rows.pending, remapped_rows.failure\n"
                            "GPU-0b, 1, 0, Yes, No\n"));
  CHECK(gpus[0].numbers.count("remapped_rows.pending") == 0);
  CHECK(gpus[1].numbers.at("remapped_rows.pending") == 1);
  CHECK(gpus[1].numbers.at("remapped_rows.failure") == 0);
  CHECK(parse_smi("").empty());
  CHECK(parse_smi("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n").empty());
  CHECK(same_bus("0000:2A:00.0", "00000000:2a:00.0"));
  CHECK_FALSE(same_bus("0000:2A:00.0", "00000001:2A:00.0"));
}

TEST_CASE("gpu: counters that moved accuse, old ones do not", "[gpu]") {
  SmiGpu before, after;
  before.numbers = {{"ecc.errors.uncorrected.volatile.total", 2},
                    {"ecc.errors.corrected.volatile.total", 9},
                    {"remapped_rows.correctable", 1}};
  after.numbers = before.numbers;
  CHECK(judge_smi(before, after).bad.empty());
  CHECK(judge_smi(before, after).worn.empty());
  after.numbers["ecc.errors.corrected.volatile.total"] = 10;
  CHECK(judge_smi(before, after).bad.empty());
  CHECK(judge_smi(before, after).worn.size() == 1);
  after.numbers["ecc.errors.uncorrected.volatile.total"] = 3;
  after.numbers["remapped_rows.pending"] = 1;
  CHECK(judge_smi(before, after).bad.size() == 2);
  after.numbers["remapped_rows.failure"] = 1;  // bad even when it was so before
  CHECK(judge_smi(after, after).bad.size() == 2);
}

TEST_CASE("gpu: bus bandwidth as nccl-tests defines it", "[gpu]") {
  CHECK(bus_factor(Collective::all_reduce, 8) == Approx(1.75));
  CHECK(bus_factor(Collective::all_gather, 8) == Approx(0.875));
  CHECK(bus_factor(Collective::reduce_scatter, 4) == Approx(0.75));
  CHECK(bus_factor(Collective::all_to_all, 2) == Approx(0.5));
  CHECK(bus_factor(Collective::send_receive, 2) == 1);
  CHECK(bus_factor(Collective::all_reduce, 1) == 0);
  CHECK(bus_factor(Collective::send_receive, 1) == 0);
  CHECK(bus_factor(Collective::all_reduce, 0) == 0);
  // A sum over as many ranks as anybody has is exact in a float.
  float sum = 0;
  long right = 0;
  for (int rank = 0; rank < 8192; ++rank) {
    const float value = rank_value(1, rank, 12345);
    CHECK(std::fabs(value) <= 1000);
    sum += value;
    right += static_cast<long>(value);
  }
  CHECK(static_cast<double>(sum) == static_cast<double>(right));
  CHECK(rank_value(1, 0, 5) != rank_value(1, 1, 5));
}

TEST_CASE("gpu: patterns give every cell both values, and no word its neighbour's", "[gpu]") {
  for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{1} << 34}) {
    uint64_t ones = 0, zeros = 0;
    for (int round = 0; round < kPatterns; ++round)
      ones |= pattern_at(round, index, 1), zeros |= ~pattern_at(round, index, 1);
    CHECK(ones == ~uint64_t{0});
    CHECK(zeros == ~uint64_t{0});
    CHECK(pattern_at(4, index, 1) != pattern_at(4, index + 1, 1));
    CHECK(pattern_at(8, index, 1) == ~pattern_at(9, index, 1));
    CHECK(pattern_at(8, index, 1) != pattern_at(8, index, 2));
  }
  CHECK(parse_cpu_list("0-3,8,10-11\n") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(parse_cpu_list("").empty());
}

TEST_CASE("gpu: what a check lacks on its node is named, with the library of another version that is there",
          "[gpu][gpu-checks]") {
  std::set<std::string> libraries = {"libcublasLt.so.12", "libnccl.so.2"};
  const auto missing = [&](const std::string& check, bool driver = true) {
    return missing_software(check, driver, "libcublasLt.so.12",
                            [&](const std::string& name) { return libraries.count(name) > 0; });
  };
  const std::set<std::string> products = {"gpu-gemm", "gpu-sdc", "gpu-training"};
  const std::set<std::string> together = {"gpu-nccl", "gpu-training"};
  for (const char* check : {"gpu-gemm", "gpu-sdc", "gpu-memory", "gpu-copies", "gpu-nccl", "gpu-training"}) {
    CAPTURE(check);
    libraries = {"libcublasLt.so.12", "libnccl.so.2"};
    CHECK(missing(check).is_null());
    CHECK(missing(check, false)["missing"] == "driver");
    libraries = {"libcublasLt.so.13", "libnccl.so.2"};
    const muster::Json other = {{"missing", "libcublasLt.so.12"}, {"found", "libcublasLt.so.13"}};
    CHECK(missing(check) == (products.count(check) ? other : muster::Json()));
    libraries = {"libnccl.so.2"};
    CHECK(missing(check) ==
          (products.count(check) ? muster::Json{{"missing", "libcublasLt.so.12"}} : muster::Json()));
    libraries = {"libcublasLt.so.12"};
    CHECK(missing(check) ==
          (together.count(check) ? muster::Json{{"missing", "libnccl.so.2"}} : muster::Json()));
  }
}

TEST_CASE("gpu: fp8 products are for GPUs from compute capability 8.9 on, the other formats for all",
          "[gpu][gpu-checks]") {
  CHECK_FALSE(has_format(Format::fp8, 8, 0));
  CHECK_FALSE(has_format(Format::fp8, 7, 9));
  CHECK(has_format(Format::fp8, 8, 9));
  CHECK(has_format(Format::fp8, 9, 0));
  CHECK(has_format(Format::fp8, 10, 0));
  CHECK(has_format(Format::bf16, 8, 0));
}
