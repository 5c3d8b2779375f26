#include "controller/image/elf.h"

#include <elf.h>

#include <cstring>

namespace muster {
namespace {

template <typename T>
bool at(std::string_view bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

bool text_at(std::string_view bytes, uint64_t offset, std::string& out) {
  if (offset >= bytes.size()) return false;
  const size_t end = bytes.find('\0', offset);
  if (end == std::string_view::npos) return false;
  out = bytes.substr(offset, end - offset);
  return true;
}

// Returns the file offset of a virtual address.
bool to_offset(const std::vector<Elf64_Phdr>& headers, uint64_t address, uint64_t& offset) {
  for (const auto& h : headers)
    if (h.p_type == PT_LOAD && address >= h.p_vaddr && address - h.p_vaddr < h.p_filesz) {
      offset = address - h.p_vaddr + h.p_offset;
      return true;
    }
  return false;
}

}  // namespace

Result<ElfInfo> read_elf(std::string_view bytes) {
  const auto bad = [] { return fail(Code::corrupt, "ELF tables point outside the file"); };
  ElfInfo info;
  Elf64_Ehdr head;
  if (!at(bytes, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return info;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
    return fail(Code::invalid, "not an x86-64 program");
  info.is_elf = true;
  std::vector<Elf64_Phdr> headers(head.e_phnum);
  for (size_t i = 0; i < headers.size(); ++i)
    if (!at(bytes, head.e_phoff + i * sizeof(Elf64_Phdr), headers[i])) return bad();
  std::vector<Elf64_Dyn> dynamic;
  for (const auto& h : headers) {
    if (h.p_type == PT_INTERP && !text_at(bytes, h.p_offset, info.interpreter)) return bad();
    if (h.p_type != PT_DYNAMIC) continue;
    dynamic.resize(h.p_filesz / sizeof(Elf64_Dyn));
    for (size_t i = 0; i < dynamic.size(); ++i)
      if (!at(bytes, h.p_offset + i * sizeof(Elf64_Dyn), dynamic[i])) return bad();
  }
  uint64_t strings = 0;
  bool have_strings = false;
  for (const auto& d : dynamic)
    if (d.d_tag == DT_STRTAB) have_strings = to_offset(headers, d.d_un.d_ptr, strings);
  for (const auto& d : dynamic) {
    if (d.d_tag != DT_NEEDED) continue;
    std::string name;
    if (!have_strings || !text_at(bytes, strings + d.d_un.d_val, name)) return bad();
    info.needed.push_back(std::move(name));
  }
  return info;
}

}  // namespace muster
