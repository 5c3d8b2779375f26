// What the programs need that are carried to hosts, of which muster did not choose the system: read from the
// programs of this build. Part of two test programs: that of the GPU kernels looks at theirs.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"

extern const char* const carried_dynamic;  // of the build (cmake/carried.cmake), separated by blanks
extern const char* const carried_static;
extern const char* const carried_folder;
extern const bool carried_sanitized;  // then no program is portable, and none is named

namespace {

using Names = std::vector<std::string>;

Names names_of(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A structure at this place; what lies outside of the file fails the test.
template <typename T>
T at(const std::string& file, uint64_t offset) {
  REQUIRE(offset + sizeof(T) <= file.size());
  T out;
  std::memcpy(&out, file.data() + offset, sizeof out);
  return out;
}

std::string text_at(const std::string& file, uint64_t offset) {
  REQUIRE(offset < file.size());
  return file.c_str() + offset;
}

bool is_elf(const std::string& file) { return file.size() > sizeof(Elf64_Ehdr) && file.starts_with(ELFMAG); }

std::set<uint32_t> segments(const std::string& file) {
  const auto head = at<Elf64_Ehdr>(file, 0);
  std::set<uint32_t> out;
  for (uint64_t i = 0; i < head.e_phnum; ++i)
    out.insert(at<Elf64_Phdr>(file, head.e_phoff + i * head.e_phentsize).p_type);
  return out;
}

Elf64_Shdr section_of(const std::string& file, uint64_t i) {
  const auto head = at<Elf64_Ehdr>(file, 0);
  return at<Elf64_Shdr>(file, head.e_shoff + i * head.e_shentsize);
}

std::vector<Elf64_Shdr> sections(const std::string& file, uint32_t type) {
  std::vector<Elf64_Shdr> out;
  for (uint64_t i = 0; i < at<Elf64_Ehdr>(file, 0).e_shnum; ++i)
    if (const auto one = section_of(file, i); one.sh_type == type) out.push_back(one);
  return out;
}

// "GLIBC_2.34" of every version of every library that the program asks for.
std::set<std::string> versions(const std::string& file) {
  std::set<std::string> out;
  for (const Elf64_Shdr& needs : sections(file, SHT_GNU_verneed)) {
    const uint64_t names = section_of(file, needs.sh_link).sh_offset;
    uint64_t place = needs.sh_offset;
    for (uint32_t left = needs.sh_info; left > 0; --left) {
      const auto library = at<Elf64_Verneed>(file, place);
      uint64_t one = place + library.vn_aux;
      for (uint32_t k = 0; k < library.vn_cnt; ++k) {
        const auto version = at<Elf64_Vernaux>(file, one);
        out.insert(text_at(file, names + version.vna_name));
        one += version.vna_next;
      }
      place += library.vn_next;
    }
  }
  return out;
}

// "libc.so.6" of every library that the program asks for.
std::set<std::string> libraries(const std::string& file) {
  std::set<std::string> out;
  for (const Elf64_Shdr& dynamic : sections(file, SHT_DYNAMIC)) {
    const uint64_t names = section_of(file, dynamic.sh_link).sh_offset;
    for (uint64_t k = 0; k < dynamic.sh_size / sizeof(Elf64_Dyn); ++k) {
      const auto entry = at<Elf64_Dyn>(file, dynamic.sh_offset + k * sizeof(Elf64_Dyn));
      if (entry.d_tag == DT_NEEDED) out.insert(text_at(file, names + entry.d_un.d_val));
    }
  }
  return out;
}

// glibc's own. muster-mpi-check is for images: libmpi is what it tests, and its meetings have a digest.
bool may_need(const std::string& program, const std::string& library) {
  static const std::set<std::string> glibc = {"libc.so.6",  "libm.so.6",       "ld-linux-x86-64.so.2",
                                              "libdl.so.2", "libpthread.so.0", "librt.so.1"};
  return glibc.count(library) > 0 ||
         (program == "muster-mpi-check" && (library == "libmpi.so.40" || library == "libcrypto.so.3"));
}

// The newest glibc of these: 34 for 2.34. 0: none is required.
int newest_glibc(const std::set<std::string>& versions) {
  static const std::string kPrefix = "GLIBC_2.";
  int newest = 0;
  for (const auto& version : versions)
    if (version.starts_with(kPrefix)) newest = std::max(newest, std::stoi(version.substr(kPrefix.size())));
  return newest;
}

}  // namespace

TEST_CASE("carried programs that load libraries need no glibc newer than 2.34", "[carried]") {
  constexpr int kOldest = 34;  // of EL 9
  for (const auto& name : names_of(carried_dynamic)) {
    CAPTURE(name);
    const std::string file = content_of(std::string(carried_folder) + "/" + name);
    REQUIRE(is_elf(file));
    REQUIRE(segments(file).count(PT_INTERP) == 1);
    const auto needed = versions(file);
    std::string all;
    for (const auto& version : needed) all += version + " ";
    CAPTURE(all);
    CHECK(newest_glibc(needed) > 0);  // what is not read is not proven
    CHECK(newest_glibc(needed) <= kOldest);
    // libstdc++ is in the program: EL 9's is older than that of the compiler.
    for (const auto& version : needed) CHECK(!version.starts_with("GLIBCXX_"));
  }
}

TEST_CASE("carried programs that load libraries need glibc's alone to start", "[carried]") {
  for (const auto& name : names_of(carried_dynamic)) {
    CAPTURE(name);
    const auto needed = libraries(content_of(std::string(carried_folder) + "/" + name));
    CHECK(needed.count("libc.so.6") == 1);  // what is not read is not proven
    for (const auto& library : needed) {
      CAPTURE(library);
      CHECK(may_need(name, library));
    }
  }
  CHECK_FALSE(may_need("muster", "libstdc++.so.6"));
  CHECK_FALSE(may_need("muster", "libmpi.so.40"));
}

TEST_CASE("carried programs that are static ask for no loader and no library", "[carried]") {
  for (const auto& name : names_of(carried_static)) {
    CAPTURE(name);
    const std::string file = content_of(std::string(carried_folder) + "/" + name);
    REQUIRE(is_elf(file));
    CHECK(segments(file).count(PT_LOAD) == 1);
    CHECK(segments(file).count(PT_INTERP) == 0);
    CHECK(segments(file).count(PT_DYNAMIC) == 0);
  }
}

TEST_CASE("the programs of this build are among those that are read", "[carried]") {
  CHECK(names_of(carried_dynamic).empty() == carried_sanitized);
}

TEST_CASE("versions are compared as numbers", "[carried]") {
  CHECK(newest_glibc({"GLIBC_2.4", "GLIBC_2.2.5", "GLIBC_2.34"}) == 34);
  CHECK(newest_glibc({"GLIBC_2.9", "GLIBC_2.10", "GCC_3.0"}) == 10);
  CHECK(newest_glibc({"OPENSSL_3.0.0"}) == 0);
}
