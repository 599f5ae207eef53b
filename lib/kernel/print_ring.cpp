#include <cstring>
#include <kernel/print_ring.h>
#include <kernel/printf.h>
#include <new>
#include <polder/ptx_abi.h>

namespace polder::kernel {
namespace {

// The first record; its size is 0 when there is none that can be read.
PtxPrintRecord header_of(std::span<const std::byte> records) {
    PtxPrintRecord header{};
    if (records.size() < sizeof header)
        return header;
    std::memcpy(&header, records.data(), sizeof header);
    const uint64_t needed = sizeof header + uint64_t{header.format_bytes} + header.arguments_bytes;
    if (header.bytes % 8 != 0 || header.bytes > records.size() || needed > header.bytes || header.format_bytes == 0)
        return {};
    return header;
}

std::optional<std::string> text_of(std::span<const std::byte> record, const PtxPrintRecord& header) {
    const auto* const format = reinterpret_cast<const char*>(record.data() + sizeof header);
    return format_text({format, strnlen(format, header.format_bytes)},
                       record.subspan(sizeof header + header.format_bytes, header.arguments_bytes), record);
}

} // namespace

void print_ring(std::span<const std::byte> records, driver::PrintText print, void* user) {
    for (;;) {
        const PtxPrintRecord header = header_of(records);
        if (header.bytes == 0)
            return;
        try {
            if (const auto text = text_of(records.first(header.bytes), header))
                print(user, text->data(), text->size());
        } catch (const std::bad_alloc&) {
            return;  // a kernel has no other way to report it
        }
        records = records.subspan(header.bytes);
    }
}

} // namespace polder::kernel
