// The lists of storages that may be evicted: storages are created and destroyed, lose their memory and get it again while a search claims and plans them.
#include "space/residents.h"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace polder::memory {
namespace {

using Which = Residents::Claimed::Which;

// Imitates a storage with its lock.
struct Fake {
    static constexpr uint32_t alive = 0x600D;
    Fake() { entry.storage = reinterpret_cast<StorageImpl*>(this); }
    ~Fake() { mark = 0; }
    static Fake& of(const Residents::Entry& entry) { return *reinterpret_cast<Fake*>(entry.storage); }

    std::mutex lock;
    std::atomic<uint32_t> mark{alive};
    Residents::Entry entry;
};

void end(Residents& residents, Fake& fake) {
    do
        residents.remove(fake.entry);
    while (!Residents::has_left(fake.entry));
}

std::vector<Fake*> all_of(Residents& residents) {
    const Residents::Claimed claimed{residents, Which::all};
    std::vector<Fake*> found;
    for (const Residents::Entry* entry : claimed.entries())
        found.push_back(&Fake::of(*entry));
    return found;
}

Fake* first_of_plan(Residents& residents) {
    const Residents::Claimed claimed{residents, Which::first_of_plan};
    return claimed.entries().empty() ? nullptr : &Fake::of(*claimed.entries().front());
}

TEST(Residents, ThePlanHasAnOrderOfItsOwn) {
    Residents residents;
    std::vector<std::unique_ptr<Fake>> fakes;
    std::vector<Fake*> in_order;
    for (int i = 0; i < 6; ++i) {
        fakes.push_back(std::make_unique<Fake>());
        residents.add(fakes.back()->entry);
        in_order.push_back(fakes.back().get());
    }
    EXPECT_EQ(all_of(residents), in_order);
    EXPECT_EQ(first_of_plan(residents), nullptr);
    for (const size_t i : {4u, 1u, 3u, 1u})
        residents.plan(fakes[i]->entry);
    EXPECT_EQ(first_of_plan(residents), fakes[4].get());
    end(residents, *fakes[4]);
    EXPECT_EQ(first_of_plan(residents), fakes[1].get());
    residents.take_from_plan(fakes[1]->entry);
    EXPECT_EQ(first_of_plan(residents), fakes[3].get());
    EXPECT_EQ(all_of(residents),
              (std::vector<Fake*>{fakes[3].get(), fakes[0].get(), fakes[2].get(), fakes[5].get(), fakes[1].get()}));
    residents.forget_plan();
    EXPECT_EQ(first_of_plan(residents), nullptr);
    EXPECT_EQ(all_of(residents).size(), 5u);
    residents.plan(fakes[4]->entry);  // in no list
    EXPECT_EQ(first_of_plan(residents), nullptr);
    for (const auto& fake : fakes)
        end(residents, *fake);
    EXPECT_TRUE(all_of(residents).empty());
}

// Also when the claiming thread returns it to a list, as moving a replica does.
TEST(Residents, TheEndWaitsForTheClaimThenLeavesAllLists) {
    Residents residents;
    Fake fake;
    residents.add(fake.entry);
    std::atomic<bool> has_ended{false};
    std::thread other;
    {
        const Residents::Claimed claimed{residents, Which::all};
        ASSERT_EQ(claimed.entries().size(), 1u);
        other = std::thread([&] {
            end(residents, fake);
            has_ended = true;
        });
        while (fake.entry.is_listed())
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(has_ended);
        residents.add(fake.entry);
    }
    other.join();
    EXPECT_TRUE(has_ended);
    EXPECT_TRUE(all_of(residents).empty());
}

// A storage is freed as soon as it is destroyed, so a search that still used it would read freed memory.
TEST(Residents, WhatIsClaimedDoesNotEnd) {
    constexpr int rounds = 400;
    Residents residents;
    std::atomic<int> running{3};
    std::atomic<bool> is_right{true};
    const auto come_and_go = [&] {
        for (int round = 0; round < rounds; ++round) {
            std::vector<std::unique_ptr<Fake>> fakes;
            for (int i = 0; i < 8; ++i) {
                fakes.push_back(std::make_unique<Fake>());
                const std::lock_guard guard{fakes.back()->lock};
                residents.add(fakes.back()->entry);
            }
            for (size_t i = 0; i < fakes.size(); i += 2) {
                const std::lock_guard guard{fakes[i]->lock};
                residents.remove(fakes[i]->entry);
                residents.add(fakes[i]->entry);
            }
            for (const auto& fake : fakes) {
                end(residents, *fake);
                is_right = is_right && !fake->entry.is_listed() && fake->entry.claims == 0;
            }
        }
        --running;
    };
    std::vector<std::thread> threads;
    for (int i = running; i > 0; --i)
        threads.emplace_back(come_and_go);
    for (unsigned pass = 0; running > 0; ++pass) {
        {
            const Residents::Claimed claimed{residents, Which::all};
            for (Residents::Entry* entry : claimed.entries()) {
                Fake& fake = Fake::of(*entry);
                const std::lock_guard guard{fake.lock};
                is_right = is_right && fake.mark == Fake::alive;
                if (++pass % 3 == 0)
                    residents.plan(*entry);
                else if (pass % 7 == 0)
                    residents.remove(*entry);
            }
        }
        for (int i = 0; i < 4; ++i) {
            const Residents::Claimed claimed{residents, Which::first_of_plan};
            for (Residents::Entry* entry : claimed.entries()) {
                Fake& fake = Fake::of(*entry);
                const std::lock_guard guard{fake.lock};
                is_right = is_right && fake.mark == Fake::alive;
                residents.take_from_plan(*entry);
            }
        }
        if (pass % 5 == 0)
            residents.forget_plan();
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_TRUE(is_right);
    EXPECT_TRUE(all_of(residents).empty());
}

}  // namespace
}  // namespace polder::memory
