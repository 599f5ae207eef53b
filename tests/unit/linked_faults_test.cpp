// Memory that the host and a device with unified memory share, where the driver's change of the owner fails: the command fails, the owner stays
// the same, and the next command makes the change again.
#include "support/linked_fixture.h"

#include <functional>
#include <utility>
#include <vector>

namespace polder::memory {
namespace {

using test::apart;
using test::FakeQueue;
using test::LinkedMemory;
using test::pattern;
using test::shared;
using test::size;

// The command fails, whether it reads or overwrites: the side that it executes on does not own the memory. Everything works afterwards.
TEST_F(LinkedMemory, ACommandWhoseChangeOfTheOwnerFailsFailsAloneAndTheNextOneTriesAgain) {
    const StorageRect all = StorageRect::of({0, size});
    const std::byte nine{9};
    std::vector<std::byte> to(size);
    const auto from = pattern(size, 5);
    using Command = std::function<Result<driver::Timepoint>(Storage&, uint32_t)>;
    const auto kernel = [&](Access access) -> Command {
        return [&, access](Storage& storage, uint32_t space) -> Result<driver::Timepoint> {
            return world.kernel(world.on(space), {{&storage, {0, size}, access}},
                                [](const auto& at) { at[0][0] ^= std::byte{0}; });
        };
    };
    const auto map = [&](MapAccess access) -> Command {
        return [&, access](Storage& storage, uint32_t space) {
            return world.domain->map(world.on(space), storage, all, access);
        };
    };
    const auto other = written(SpaceId{2});
    struct Case {
        Command command;
        SpaceId owner;  // the side that it needs
        uint64_t moved = 0;  // by the command itself
    };
    const std::vector<Case> commands = {
        {kernel(Access::read), shared},
        {kernel(Access::read), host_space},
        {kernel(Access::read_write), shared},
        {kernel(Access::overwrite), shared},
        {kernel(Access::overwrite), host_space},
        {map(MapAccess::read), host_space},
        {map(MapAccess::write), host_space},
        {map(MapAccess::write_invalidate), host_space},
        {[&](Storage& storage, uint32_t space) {
             return world.domain->read(world.on(space), storage, all, to.data(), {});
         },
         host_space},
        {[&](Storage& storage, uint32_t space) {
             return world.domain->write(world.on(space), storage, all, from.data(), {});
         },
         shared, size},
        {[&](Storage& storage, uint32_t space) {
             return world.domain->fill(world.on(space), storage, {0, size}, {&nine, 1});
         },
         shared},
        {[&](Storage& storage, uint32_t space) {
             return world.domain->copy(world.on(space), storage, all, *other, all);
         },
         host_space},
        {[&](Storage& storage, uint32_t space) {
             return world.domain->copy(world.on(space), *other, all, storage, all);
         },
         shared, size},
        {[&](Storage& storage, uint32_t space) {
             const Use use{&storage, {0, size}, Access::read};
             return world.domain->migrate(world.on(space), {&use, 1}, SpaceId{space}, Domain::Content::kept);
         },
         shared},
    };
    for (size_t number = 0; number < commands.size(); ++number) {
        SCOPED_TRACE(number);
        const auto& [command, owner, moved_by_it] = commands[number];
        const SpaceId before = owner == shared ? host_space : shared;
        const auto storage = written(host_space);
        const auto pin = world.domain->reserve_map(*storage);
        ASSERT_TRUE(pin);
        use(*storage, shared, Access::read);
        if (before == host_space)
            use(*storage, host_space, Access::read);
        world.world.run();
        ASSERT_TRUE(is_linked(*storage));
        int changes = 0;
        world.world.on_owner_change = [&](FakeQueue& queue) {
            if (changes++ == 0)
                queue.fail_next();
        };
        const auto failed = command(*storage, owner.value);
        ASSERT_TRUE(failed);
        world.world.run();
        EXPECT_EQ(changes, 1);
        EXPECT_NE(failed->queue->status(failed->value), Status::success);
        EXPECT_TRUE(storage->validate());
        world.domain->ledger().reset();
        const auto next = command(*storage, owner.value);
        ASSERT_TRUE(next);
        world.world.run();
        EXPECT_EQ(changes, 2);
        EXPECT_EQ(next->queue->status(next->value), Status::success);
        EXPECT_EQ(moved(), moved_by_it) << "nothing is copied between the two";
        world.world.on_owner_change = {};
        ASSERT_TRUE(world.domain->fill(world.on(before.value), *storage, {0, 1}, {&nine, 1}));
        EXPECT_EQ(read(*storage, shared), read(*storage, host_space));
        EXPECT_EQ(read(*storage, shared)[0], nine);
        EXPECT_TRUE(storage->validate());
    }
}

// The side that owned the memory goes on.
TEST_F(LinkedMemory, WhenAChangeOfTheOwnerFailsTheOldOwnerGoesOn) {
    for (const SpaceId before : {host_space, shared}) {
        const SpaceId after = before == shared ? host_space : shared;
        const auto storage = written(shared);
        use(*storage, before, Access::read);
        world.world.run();
        world.world.on_owner_change = [](FakeQueue& queue) { queue.fail_next(); };
        use(*storage, after, Access::read_write);
        world.world.run();
        world.world.on_owner_change = [](FakeQueue&) { ADD_FAILURE() << "it is the owner"; };
        std::vector<std::byte> seen;
        use(*storage, before, Access::read_write);
        world.kernel(world.on(before.value), {{storage.get(), {0, size}, Access::read}},
                     [&](const auto& at) { seen.assign(at[0], at[0] + size); });
        world.world.run();
        EXPECT_EQ(seen, pattern(size, 2));
        world.world.on_owner_change = {};
        EXPECT_EQ(read(*storage, after), pattern(size, 2));
    }
}

// A storage is released while the device owns its block. The next storage uses the block on the host's side: the map that failed is made again.
TEST_F(LinkedMemory, AReleasedBlockWhoseLastMapFailsIsTheHostsBeforeItIsUsedAgain) {
    for (const int failures : {1, 2, 3}) {
        SCOPED_TRACE(failures);
        const std::byte* address = nullptr;
        int changes = 0;
        {
            const auto storage = world.storage(size);
            use(*storage, shared, Access::overwrite);
            world.world.run();
            address = storage->map_address();
            world.world.on_owner_change = [&](FakeQueue& queue) {
                if (changes++ < failures)
                    queue.fail_next();
            };
        }
        world.world.run();
        EXPECT_EQ(changes, 1);
        EXPECT_EQ(blocks(host_space), 0u);
        // Every command that comes while a map fails, fails; the first one after that works. The fake device objects to a use by the host before.
        const auto next = world.storage(size);
        for (int attempt = 1; attempt <= failures; ++attempt) {
            const auto done = world.kernel(world.on(0), {{next.get(), {0, size}, Access::overwrite}},
                                           [](const auto& at) { std::fill_n(at[0], size, std::byte{8}); });
            world.world.run();
            ASSERT_EQ(next->map_address(), address) << "not the block";
            EXPECT_EQ(done.queue->status(done.value) == Status::success, attempt == failures);
            EXPECT_EQ(changes, attempt + 1);
        }
        EXPECT_EQ(read(*next, host_space), std::vector<std::byte>(size, std::byte{8}));
        EXPECT_EQ(changes, failures + 1);
        world.world.on_owner_change = {};
        // The device gets it as any other.
        use(*next, shared, Access::read_write);
        EXPECT_EQ(read(*next, shared), std::vector<std::byte>(size, std::byte{9}));
        EXPECT_TRUE(next->validate());
    }
}

// The same when the map fails after the block has its new owner, also one that is linked again.
class LastMapInFlight : public LinkedMemory, public testing::WithParamInterface<SpaceId> {};

TEST_P(LastMapInFlight, MayStillFailWhenTheBlockHasItsNextOwner) {
    const SpaceId first = GetParam();
    int changes = 0;
    const std::byte* address = nullptr;
    const size_t executed = world.world.operations_executed();
    {
        const auto storage = world.storage(size);
        use(*storage, shared, Access::overwrite);
        address = storage->map_address();
        // There is room for no other block.
        world.space(0).pool().set_limit(ByteCount{size});
        world.world.on_owner_change = [&](FakeQueue& queue) {
            if (changes++ == 0)
                queue.fail_next();
        };
    }
    const auto next = world.storage(size);
    const auto pin = world.domain->reserve_map(*next);
    ASSERT_TRUE(pin);
    ASSERT_EQ(next->map_address(), address) << "not the block";
    ASSERT_EQ(world.world.operations_executed(), executed) << "the map is not in flight any more";
    const auto command = [&] {
        const auto done = world.kernel(world.on(first.value), {{next.get(), {0, size}, Access::overwrite}},
                                       [](const auto& at) { std::fill_n(at[0], size, std::byte{8}); });
        world.world.run();
        return done.queue->status(done.value);
    };
    EXPECT_NE(command(), Status::success);
    EXPECT_EQ(command(), Status::success);
    EXPECT_EQ(read(*next, host_space), std::vector<std::byte>(size, std::byte{8}));
    EXPECT_TRUE(next->validate());
    world.world.on_owner_change = {};
}
INSTANTIATE_TEST_SUITE_P(NextUse, LastMapInFlight, testing::Values(host_space, shared),
                         [](const auto& of) { return of.param == host_space ? "OnTheHost" : "OnTheDevice"; });

// Commands on both sides in flight, over parts of the storage, of which each change of an owner fails in turn: each command succeeds or fails,
// and what has succeeded is what both sides see.
TEST_F(LinkedMemory, AnyChangeOfTheOwnerMayFailWhileOthersWait) {
    auto& random = world.world.random();
    bool some_left = true;
    for (int failing = 0; some_left; ++failing) {
        some_left = false;
        for (int run = 0; run < 8; ++run) {
            const auto storage = written(run % 2 == 0 ? host_space : shared);
            int changes = 0;
            world.world.on_owner_change = [&](FakeQueue& queue) {
                if (changes++ == failing)
                    queue.fail_next();
            };
            auto expected = source;
            struct Started {
                driver::Timepoint done;
                ByteRange range;
            };
            std::vector<Started> started;
            driver::Timepoint last;
            for (int step = 0; step < 12; ++step) {
                const uint64_t begin = 1024 * (random() % 6);
                const ByteRange range{begin, begin + 1024 * (1 + random() % 2)};
                // Ordered by their queue and the memory layer alone on one side; by the application between the two.
                const auto space = static_cast<uint32_t>(random() % 2);
                if (last.queue)
                    world.world.step(random() % 3);
                const driver::Timepoint order = last.queue && has_failed(last) ? driver::Timepoint{} : last;
                last = world.kernel(world.on(space, {&order, order.queue ? size_t{1} : 0}),
                                    {{storage.get(), range, Access::read_write}}, [range](const auto& at) {
                                        for (uint64_t i = 0; i < range.size(); ++i)
                                            at[0][i] = std::byte(static_cast<uint8_t>(at[0][i]) + 1);
                                    });
                started.push_back({last, range});
            }
            world.world.run();
            world.world.on_owner_change = {};
            some_left = some_left || changes > failing;
            for (const Started& command : started)
                if (command.done.queue->status(command.done.value) == Status::success)
                    for (uint64_t i = command.range.begin; i < command.range.end; ++i)
                        expected[i] = std::byte(static_cast<uint8_t>(expected[i]) + 1);
            ASSERT_TRUE(storage->validate());
            ASSERT_EQ(read(*storage, host_space), expected) << failing << " " << run;
            ASSERT_EQ(read(*storage, shared), expected) << failing << " " << run;
            ASSERT_EQ(moved(), 0u);
        }
    }
}

}  // namespace
}  // namespace polder::memory
