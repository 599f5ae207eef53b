// Pixels of three bytes that each lane loads as a word with one byte beside them (vectorizer/code/lane_structures.cpp).
#include "workgroup_harness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace polder::compiler::workgroup::test {
namespace {

// Bytes in one page, between two that may not be touched.
class FencedPage {
public:
    FencedPage()
        : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
          base_(static_cast<uint8_t*>(mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        EXPECT_EQ(mprotect(data(), size_, PROT_READ | PROT_WRITE), 0);
        for (size_t i = 0; i < size_; ++i)
            data()[i] = static_cast<uint8_t>(i * 37 + i / 256);
    }
    FencedPage(const FencedPage&) = delete;
    FencedPage& operator=(const FencedPage&) = delete;
    ~FencedPage() { munmap(base_, 3 * size_); }

    [[nodiscard]] uint8_t* data() const { return base_ + size_; }
    [[nodiscard]] size_t size() const { return size_; }

private:
    size_t size_;
    uint8_t* base_;
};

constexpr const char* moved_pixels = R"(
    kernel void k(global const uchar* in, global const int* places, global int* out, int greatest) {
        const int i = get_global_id(0);
        if (places[i] <= greatest) {
            const uchar3 pixel = vload3(0, in + places[i]);
            out[i] = pixel.x + 1000 * pixel.y + 1000000 * pixel.z;
        }
    })";

constexpr const char* signed_pixels = R"(
    kernel void k(global const char* in, global const int* places, global int* out, int greatest) {
        const int i = get_global_id(0);
        const char3 pixel = vload3(0, in + places[i]);
        out[i] = places[i] <= greatest ? pixel.x + 1000 * pixel.y + 1000000 * pixel.z : -5;
    })";

TEST(ThreeBytes, AreOneGather) {
    for (const char* source : {moved_pixels, signed_pixels}) {
        Compiled program(source, processor_with_512_bits);
        ASSERT_EQ(program.prepare("k", true, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible), "");
        EXPECT_EQ(count(program, "call <16 x i32> @llvm.masked.gather"), 1U) << program.optimised();
    }
}

// The first and the last bytes of the page are among them, from even and from odd addresses.
TEST(ThreeBytes, AtTheEndsOfAPage_AreReadWithoutItsNeighbours) {
    const FencedPage page;
    constexpr size_t pixels = 150;
    std::vector<int> places(pixels);
    for (size_t i = 0; i < pixels; ++i)
        places[i] = static_cast<int>(i % 3 == 0   ? i / 3
                                     : i % 3 == 1 ? page.size() - 3 - i / 3
                                                  : i * 7919 % (page.size() - 2));
    for (const char* processor : processors) {
        if (!runs_here(processor))
            continue;
        for (const bool is_signed : {false, true})
            for (const int greatest : {1 << 20, 2000, -1}) {
                Compiled program(is_signed ? signed_pixels : moved_pixels, processor);
                ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible),
                          "");
                std::vector<int> out(pixels, -5), expected(pixels, -5);
                const auto byte = [&](size_t i) {
                    return is_signed ? int{static_cast<int8_t>(page.data()[i])} : int{page.data()[i]};
                };
                for (size_t i = 0; i < pixels; ++i)
                    if (const size_t at = index_of(places[i]); places[i] <= greatest)
                        expected[i] = byte(at) + 1000 * byte(at + 1) + 1000000 * byte(at + 2);
                program.run({1, {pixels, 1, 1}, {50, 1, 1}},
                            Arguments().add(page.data()).add(places.data()).add(out.data()).add(greatest));
                EXPECT_EQ(out, expected) << processor << ", signed: " << is_signed << ", greatest " << greatest;
            }
    }
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
