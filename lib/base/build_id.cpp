#include <base/build_id.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <string>

namespace polder {
namespace {

constexpr size_t bytes_used = 8;

std::string hexadecimal(const unsigned char* bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < bytes_used; ++i) {
        text.push_back(digits[bytes[i] / 16]);
        text.push_back(digits[bytes[i] % 16]);
    }
    return text;
}

// Finds the build id in a segment of ELF notes. A note is a header, a name and a description; the latter two are padded to four bytes.
std::string find_build_id(const unsigned char* notes, size_t size) {
    const auto padded = [](size_t bytes) { return (bytes + 3) & ~size_t{3}; };
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes, sizeof note);
        const size_t name_at = sizeof note;
        const size_t description_at = name_at + padded(note.n_namesz);
        const size_t end = description_at + padded(note.n_descsz);
        if (end > size)
            break;
        const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes + name_at, "GNU", 4) == 0;
        if (is_gnu && note.n_type == NT_GNU_BUILD_ID && note.n_descsz >= bytes_used)
            return hexadecimal(notes + description_at);
        notes += end;
        size -= end;
    }
    return {};
}

// Called for each loaded object; stops at the one that contains this function.
int visit(dl_phdr_info* object, size_t, void* found) {
    const auto here = reinterpret_cast<uintptr_t>(&visit);
    bool is_ours = false;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) & segment = object->dlpi_phdr[i];
        is_ours =
            is_ours || (segment.p_type == PT_LOAD && here - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz);
    }
    if (!is_ours)
        return 0;
    auto& id = *static_cast<std::string*>(found);
    for (int i = 0; i < object->dlpi_phnum && id.empty(); ++i) {
        const ElfW(Phdr) & segment = object->dlpi_phdr[i];
        if (segment.p_type == PT_NOTE)
            id = find_build_id(reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr),
                               segment.p_memsz);
    }
    return 1;
}

}  // namespace

std::string_view build_id() {
    // Never destroyed, because other static destructors may still read it.
    static const std::string& id = *[] {
        auto* const text = new std::string;
        dl_iterate_phdr(visit, text);
        return text;
    }();
    return id;
}

}  // namespace polder
