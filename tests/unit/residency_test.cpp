// What the commands of a residency wait for. Random touches in random pieces; the reference are the functions for reading and for writing.
#include "residency/residency.h"
#include "support/stub_queue.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace polder::memory {
namespace {

constexpr SpaceId from{1}, to{2}, other{3};

class Timeline final : public test::StubQueue {
public:
    explicit Timeline(uint64_t completed) { completed_.store(completed); }
};

struct Queues {
    Timeline first{5}, second{0}, third{8};
    test::FailedQueue failed;

    [[nodiscard]] driver::Timepoint random_point(std::mt19937_64& random) {
        driver::Queue* const queues[] = {&first, &second, &third, &failed};
        driver::Queue* const queue = queues[random() % 4];
        return {queue, queue == &failed ? 1 : random() % 10 + 1};
    }
};

// Random operations of all kinds on random ranges. Afterwards `from` holds all bytes.
Residency random_residency(std::mt19937_64& random, Queues& queues) {
    constexpr uint64_t size = 64;
    Residency residency{ByteCount{size}};
    const auto random_range = [&] {
        const uint64_t begin = random() % size;
        return ByteRange{begin, begin + 1 + random() % (size - begin)};
    };
    constexpr SpaceId spaces[] = {from, to, other};
    for (int step = 0; step < 12; ++step) {
        const ByteRange range = random_range();
        const SpaceId space = spaces[random() % 3];
        const driver::Timepoint done = queues.random_point(random);
        residency.prepare({&range, 1}, 3);
        switch (random() % 4) {
        case 0: residency.commit_read({&range, 1}, space, TouchKind::user_read, done); break;
        case 1: residency.commit_write({&range, 1}, space, Version{1}, done); break;
        case 2: residency.commit_owner_change(range, space, done); break;
        default: residency.commit_broken_transfer({&range, 1}, {space, spaces[random() % 3], done, done}); break;
        }
        residency.merge({&range, 1});
    }
    return residency;
}

std::vector<std::pair<const driver::Queue*, uint64_t>> sorted(driver::Waits waits) {
    std::vector<std::pair<const driver::Queue*, uint64_t>> points;
    for (const driver::Timepoint& point : waits)
        points.emplace_back(point.queue, point.value);
    std::ranges::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

// The latest point of each queue, which is what the points order an operation after.
std::vector<std::pair<const driver::Queue*, uint64_t>> latest(driver::Waits waits) {
    std::vector<std::pair<const driver::Queue*, uint64_t>> points = sorted(waits);
    std::vector<std::pair<const driver::Queue*, uint64_t>> last;
    for (const auto& point : points) {
        if (!last.empty() && last.back().first == point.first)
            last.back() = point;
        else
            last.push_back(point);
    }
    return last;
}

TEST(Residency, ATransferWaitsForWhatReadingAndWritingWaitFor) {
    for (uint64_t seed = 0; seed < 5000; ++seed) {
        std::mt19937_64 random{seed};
        Queues queues;
        const Residency residency = random_residency(random, queues);
        const ByteRange range{random() % 32, 32 + random() % 32};
        WaitList reading;
        WaitList writing;
        residency.hidden_read_waits(range, from, reading);
        residency.hidden_write_waits(range, to, writing);
        WaitList both;
        both.add(writing.view());
        both.add_all(reading);
        WaitList transfer;
        residency.transfer_waits(range, from, to, transfer);
        EXPECT_EQ(latest(transfer.view()), latest(both.view())) << "seed " << seed;
        // Every point for which reading needs success is there.
        for (const auto& point : sorted(reading.view())) {
            const auto points = sorted(transfer.view());
            EXPECT_TRUE(std::ranges::any_of(
                points, [&](const auto& known) { return known.first == point.first && known.second >= point.second; }))
                << "seed " << seed;
        }
    }
}

// What a storage's memory waits for when it is freed, collected from one piece without a wait list.
TEST(Residency, TheUsesOfOnePieceAreThoseOfTheWaitList) {
    for (uint64_t seed = 0; seed < 5000; ++seed) {
        std::mt19937_64 random{seed};
        Queues queues;
        constexpr ByteRange whole{0, 64};
        Residency residency{ByteCount{whole.size()}};
        constexpr SpaceId spaces[] = {from, to, other};
        for (int step = 0; step < 8; ++step) {
            const SpaceId space = spaces[random() % 3];
            residency.prepare({&whole, 1}, 1);
            residency.commit_read({&whole, 1}, space, random() % 2 ? TouchKind::user_read : TouchKind::hidden_read,
                                  queues.random_point(random));
        }
        ASSERT_TRUE(residency.only());
        WaitList waits;
        residency.all_waits(whole, to, waits);
        SmallVector<driver::Timepoint, 3> uses;
        residency.only()->touches.append_in_flight(to, uses);
        EXPECT_EQ(sorted(uses.view()), latest(waits.view())) << "seed " << seed;
    }
}

}  // namespace
}  // namespace polder::memory
