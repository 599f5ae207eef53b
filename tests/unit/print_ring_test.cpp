// Formatting of the records that kernels wrote into a printf ring, well-formed and not.
#include <cstring>
#include <gtest/gtest.h>
#include <kernel/print_ring.h>
#include <polder/ptx_abi.h>
#include <string>
#include <vector>

namespace polder {
namespace {

using Bytes = std::vector<std::byte>;

// A record as the device writes it.
Bytes record_of(std::string format, const std::vector<uint64_t>& slots, const std::string& strings = {}) {
    format.resize((format.size() + 8) / 8 * 8, '\0');
    PtxPrintRecord header{};
    header.format_bytes = static_cast<uint32_t>(format.size());
    header.arguments_bytes = static_cast<uint32_t>(slots.size() * 8);
    const size_t strings_bytes = (strings.size() + 7) / 8 * 8;
    header.bytes = static_cast<uint32_t>(sizeof header + format.size() + header.arguments_bytes + strings_bytes);
    Bytes bytes(header.bytes);
    std::byte* at = bytes.data();
    std::memcpy(at, &header, sizeof header);
    std::memcpy(at += sizeof header, format.data(), format.size());
    if (!slots.empty())
        std::memcpy(at + format.size(), slots.data(), slots.size() * 8);
    std::memcpy(at + format.size() + header.arguments_bytes, strings.data(), strings.size());
    return bytes;
}

Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::string printed(const Bytes& records) {
    std::string text;
    kernel::print_ring(
        records, [](void* user, const char* part, size_t size) { static_cast<std::string*>(user)->append(part, size); },
        &text);
    return text;
}

TEST(PrintRing, RecordsAreFormattedInOrder) {
    EXPECT_EQ(printed(record_of("%d-", {7}) + record_of("%s!", {32}, "hello") + Bytes(64)), "7-hello!");
}

TEST(PrintRing, ANullString_IsShown) { EXPECT_EQ(printed(record_of("%s", {0})), "(null)"); }

TEST(PrintRing, AnUnfinishedRecord_EndsTheRing) {
    Bytes unfinished = record_of("lost", {});
    std::memset(unfinished.data(), 0, 4);
    EXPECT_EQ(printed(record_of("a", {}) + unfinished + record_of("b", {})), "a");
}

TEST(PrintRing, NothingOutsideARecord_IsRead) {
    // A string beyond the record, a record beyond the ring, parts larger than their record.
    EXPECT_EQ(printed(record_of("%s", {4096})), "");
    Bytes too_long = record_of("x", {});
    too_long[0] = std::byte{0xf8};
    EXPECT_EQ(printed(too_long), "");
    Bytes large_format = record_of("x", {});
    std::memset(large_format.data() + 4, 0xff, 4);
    EXPECT_EQ(printed(large_format), "");
    EXPECT_EQ(printed(Bytes(7, std::byte{1})), "");
    Bytes without_end = record_of("%s", {32}, "12345678");
    EXPECT_EQ(printed(without_end), "12345678");
}

} // namespace
} // namespace polder
