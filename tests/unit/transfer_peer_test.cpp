// Copies between peers: lists of copies, and which peer is read.
#include "support/memory_world.h"

#include <vector>

namespace polder::memory {
namespace {

using test::MemoryWorld;
using test::pattern;
using test::Peers;

constexpr uint64_t size = 1024;
const ByteRange whole{0, size};

TEST(TransferPeer, WhatOnePeerHasIsOneList) {
    constexpr uint32_t storages = 5;
    MemoryWorld world{{.separate_memories = 3, .peers = Peers::all}};
    std::vector<Ref<Storage>> all;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<driver::Timepoint> written;
    std::vector<Use> uses;
    for (uint32_t i = 0; i < storages; ++i) {
        all.push_back(world.storage(size));
        bytes.push_back(pattern(size, static_cast<uint8_t>(i)));
        // The last buffer is on another device than the others.
        const uint32_t writer = i + 1 == storages ? 3 : 1;
        written.push_back(
            world.domain->write(world.on(writer), *all[i], StorageRect::of(whole), bytes[i].data(), {}).value());
        uses.push_back({all[i].get(), whole, Access::read});
    }
    world.world.run();
    world.moved();
    const size_t before = world.world.operations_executed();
    std::vector<std::vector<std::byte>> seen(storages);
    world.kernel(world.on(2, written), uses, [&](const auto& at) {
        for (uint32_t i = 0; i < storages; ++i)
            seen[i].assign(at[i], at[i] + size);
    });
    world.world.run();
    EXPECT_EQ(seen, bytes);
    EXPECT_EQ(world.world.operations_executed(), before + 3) << "two transfers and the kernel";
    EXPECT_EQ(world.moved(), storages * size);
    // Nothing moves again.
    world.kernel(world.on(2), uses);
    EXPECT_EQ(world.moved(), 0u);
}

TEST(TransferPeer, AListThatFailsLeavesItsSources) {
    MemoryWorld world{{.peers = Peers::all}};
    const auto one = world.storage(size);
    const auto two = world.storage(size);
    const auto bytes = pattern(size, 9);
    for (Storage* const storage : {one.get(), two.get()})
        static_cast<void>(world.domain->write(world.on(1), *storage, StorageRect::of(whole), bytes.data(), {}).value());
    world.world.run();
    const size_t queues = world.world.queues().size();
    const std::vector<Use> uses{{one.get(), whole, Access::read}, {two.get(), whole, Access::read}};
    // The first list makes the hidden queue; the next one fails on it.
    world.kernel(world.on(2), uses);
    world.world.run();
    ASSERT_EQ(world.world.queues().size(), queues + 1);
    for (Storage* const storage : {one.get(), two.get()})
        static_cast<void>(world.domain->write(world.on(1), *storage, StorageRect::of(whole), bytes.data(), {}).value());
    world.world.run();
    world.world.queues().back()->fail_next();
    const driver::Timepoint failed = world.kernel(world.on(2), uses);
    world.world.run();
    EXPECT_NE(failed.queue->status(failed.value), Status::success);
    std::vector<std::byte> seen;
    world.kernel(world.on(2, {}, 1), uses, [&](const auto& at) { seen.assign(at[1], at[1] + size); });
    world.world.run();
    EXPECT_EQ(seen, bytes);
}

TEST(TransferPeer, TheNearestPeerIsRead) {
    MemoryWorld world{{.separate_memories = 3, .peers = Peers::all, .links = {{1, {.hops = 2}}, {2, {.hops = 1}}}}};
    const auto storage = world.storage(size);
    const auto bytes = pattern(size, 9);
    auto done = world.domain->write(world.on(1), *storage, StorageRect::of(whole), bytes.data(), {}).value();
    done = world.kernel(world.on(2, {&done, 1}), {{storage.get(), whole, Access::read}});
    world.world.run();
    world.domain->ledger().reset();
    world.kernel(world.on(3, {&done, 1}), {{storage.get(), whole, Access::read}});
    world.world.run();
    const std::vector<Ledger::Entry> moves = world.domain->ledger().entries();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].from, SpaceId{2});
    EXPECT_EQ(moves[0].to, SpaceId{3});
}

}  // namespace
}  // namespace polder::memory
