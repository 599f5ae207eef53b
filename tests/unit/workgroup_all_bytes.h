// Memory for tests of indices that leave the range of 32 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>

namespace polder::compiler::workgroup::test {

// Bytes for all numbers of 32 bits. Those near 0, 2^31 and 2^32 have values.
class AllBytes {
public:
    AllBytes()
        : base_(static_cast<uint8_t*>(
              mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        for (const uint64_t edge : {uint64_t{0}, uint64_t{1} << 31, size})
            for (uint64_t at = edge < near ? 0 : edge - near; at < std::min(edge + near, size); ++at)
                base_[at] = static_cast<uint8_t>(at * 37 + at / 256 + 11);
    }
    AllBytes(const AllBytes&) = delete;
    AllBytes& operator=(const AllBytes&) = delete;
    ~AllBytes() { munmap(base_, size); }

    [[nodiscard]] const uint8_t* unsigned_zero() const { return base_; }
    [[nodiscard]] const uint8_t* signed_zero() const { return base_ + (uint64_t{1} << 31); }

private:
    static constexpr uint64_t size = uint64_t{1} << 32, near = 1200;
    uint8_t* base_;
};

}  // namespace polder::compiler::workgroup::test
