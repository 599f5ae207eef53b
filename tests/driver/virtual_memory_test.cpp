// Memory that is committed part by part, and memory of the host that changes its owner: abilities that only some drivers have.
#include "conformance.h"

#include <array>

namespace polder::conformance {
namespace {

// Addresses of eight pages.
class Pages {
public:
    explicit Pages(driver::VirtualMemory& memory) : memory_(memory), size_(8 * memory.page().value) {
        auto reserved = memory.reserve_addresses(ByteCount{size_});
        EXPECT_TRUE(reserved.has_value());
        if (reserved)
            base_ = *reserved;
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { memory_.release_addresses({base_, size_}); }
    [[nodiscard]] driver::Memory part(uint64_t first, uint64_t count) const {
        return {base_.plus(first * memory_.page().value), count * memory_.page().value};
    }

private:
    driver::VirtualMemory& memory_;
    const uint64_t size_;
    DeviceAddress base_;
};

}  // namespace

TEST_P(DriverConformance, MemoryIsCommittedPartByPartAndKeepsItsBytes) {
    driver::VirtualMemory* const memory = device().virtual_memory();
    if (!memory)
        GTEST_SKIP() << "has no virtual memory";
    const uint64_t before = device().available_memory().value;
    {
        const Pages pages{*memory};
        EXPECT_TRUE(memory->page().divides(pages.part(0, 1).address.value));
        expect_available(before);  // addresses alone cost no memory
        const auto queue = make_queue();
        ASSERT_TRUE(memory->commit(pages.part(0, 2)));
        expect_available(before - 2 * memory->page().value);
        const Bytes in = random_bytes(2 * memory->page().value, 1);
        wait(upload(*queue, pages.part(0, 2).address, in.data(), in.size()));
        ASSERT_TRUE(memory->commit(pages.part(2, 5)));
        // One copy across the border of the two.
        const Bytes more = random_bytes(2 * memory->page().value, 2);
        wait(upload(*queue, pages.part(1, 2).address, more.data(), more.size()));
        Bytes out(3 * memory->page().value);
        wait(download(*queue, out.data(), pages.part(0, 3).address, out.size()));
        EXPECT_TRUE(std::equal(in.begin(), in.begin() + static_cast<ptrdiff_t>(memory->page().value), out.begin()));
        EXPECT_TRUE(std::equal(more.begin(), more.end(), out.begin() + static_cast<ptrdiff_t>(memory->page().value)));
        // Committed memory is decommitted in other pieces.
        memory->decommit(pages.part(4, 3));
        memory->decommit(pages.part(0, 1));
        expect_available(before - 3 * memory->page().value);
        ASSERT_TRUE(memory->commit(pages.part(4, 1)));
        Bytes kept(memory->page().value);
        wait(download(*queue, kept.data(), pages.part(1, 1).address, kept.size()));
        EXPECT_TRUE(std::equal(kept.begin(), kept.end(), more.begin()));
        memory->decommit(pages.part(1, 4));
        expect_available(before);
    }
    expect_available(before);
}

TEST_P(DriverConformance, ACommitThatFailsChangesNothing) {
    driver::VirtualMemory* const memory = device().virtual_memory();
    if (!memory)
        GTEST_SKIP() << "has no virtual memory";
    const uint64_t before = device().available_memory().value;
    const uint64_t size = memory->page().round_up(2 * before);
    const auto base = memory->reserve_addresses(ByteCount{size});
    ASSERT_TRUE(base.has_value());
    const Result<void> committed = memory->commit({*base, size});
    ASSERT_FALSE(committed.has_value());
    EXPECT_EQ(committed.error().status(), Status::mem_object_allocation_failure);
    expect_available(before);
    const driver::Memory first{*base, memory->page().value};
    ASSERT_TRUE(memory->commit(first));
    memory->decommit(first);
    memory->release_addresses({*base, size});
}

TEST_P(DriverConformance, PeersReachMemoryThatIsCommittedLater) {
    driver::PeerCopy* const peer = device().peer_copy();
    const auto other = open_another();
    if (!other)
        GTEST_SKIP() << "the machine has one device";
    driver::VirtualMemory* const memory = other->virtual_memory();
    if (!peer || !memory)
        GTEST_SKIP() << "has no peers, or no virtual memory";
    const Pages pages{*memory};
    ASSERT_TRUE(memory->commit(pages.part(0, 1)));
    ASSERT_TRUE(memory->commit(pages.part(1, 1)));
    const uint64_t size = pages.part(0, 2).size;
    const Bytes in = random_bytes(size, 3);
    Bytes out(size);
    const DeviceBytes target(device(), size);
    const auto other_queue = make_queue(*other);
    const auto queue = make_queue();
    const std::array written{upload(*other_queue, pages.part(0, 2).address, in.data(), size)};
    static_cast<void>(peer->copy(*queue, other->info().space,
                                 {device_end(pages.part(0, 2).address), device_end(target.at()), {size, 1, 1}},
                                 driver::Submission{written}));
    wait(download(*queue, out.data(), target.at(), size));
    EXPECT_EQ(in, out);
    memory->decommit(pages.part(0, 2));
}

TEST_P(DriverConformance, HostMemoryChangesItsOwnerInOrder) {
    driver::UnifiedMemory* const unified = device().unified_memory();
    if (!unified)
        GTEST_SKIP() << "does not use host memory";
    constexpr uint64_t size = 4096;
    Bytes shared(size, std::byte{1});
    const driver::Memory range{DeviceAddress::of(shared.data()), size};
    const auto queue = make_queue();
    const auto transfers = make_queue(driver::QueueRole::transfer_in);
    const std::array given{unified->unmap(*transfers, range, {})};
    const std::byte pattern{7};
    const std::array filled{queue->fill({range.address, size, {&pattern, 1}}, {given})};
    wait(unified->map(*transfers, range, {filled}));
    EXPECT_EQ(shared, Bytes(size, pattern));
}

}  // namespace polder::conformance
