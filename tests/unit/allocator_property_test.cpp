// A random trace against a model of what is in use and in flight: blocks never overlap, are aligned, are ready when they
// must be, and all memory is free at the end.
#include "support/allocator_fixture.h"

#include <random>

namespace polder::memory {
namespace {

using namespace test;

class Trace {
public:
    Trace(const char* settings, bool grows, uint64_t seed)
        : random_(seed), fixture_(settings, {.capacity = 256 * MiB, .grows = grows}), queues_(3), submitted_(3, 0) {}

    void run(int steps) {
        for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
            switch (random_() % 8) {
            case 0: complete_some(); break;
            case 1:
            case 2:
            case 3: free_one(); break;
            case 4:
                if (random_() % 200 == 0)
                    fixture_.pool->trim();
                break;
            default: lease_one(); break;
            }
            if (step % 64 == 0) {
                ASSERT_TRUE(fixture_.pool->validate());
                const auto now = fixture_.now();
                EXPECT_EQ(now.live_blocks, live_.size());
                EXPECT_EQ(now.reserved.value, fixture_.source->reserved);
                EXPECT_EQ(now.live.value + now.deferred.value + now.free.value, now.reserved.value);
            }
        }
        while (!live_.empty())
            free_one();
        for (size_t q = 0; q < queues_.size(); ++q)
            queues_[q].complete(submitted_[q]);
        fixture_.pool->drain();
        fixture_.pool->trim();
        EXPECT_EQ(fixture_.now().live.value + fixture_.now().deferred.value, 0u);
        EXPECT_EQ(fixture_.source->reserved, 0u);
        EXPECT_TRUE(fixture_.pool->validate());
    }

private:
    struct Live {
        Lease lease;
        FakeQueue* queue;
    };
    struct InFlight {
        ByteRange range;
        driver::Timepoint until;
    };

    uint64_t random_size() {
        switch (random_() % 6) {
        case 0: return random_() % 4096;
        case 1: return 1 + random_() % (MiB);
        case 2: return 1 + random_() % (12 * MiB);
        case 3: return 1 + random_() % (48 * MiB);
        default: return 1 + random_() % (200 * KiB);
        }
    }

    void lease_one() {
        const Alignment alignment{uint64_t{128} << (random_() % 4 == 0 ? random_() % 8 : 0)};
        LeaseTerms terms;
        const size_t q = random_() % (queues_.size() + 1);
        if (q < queues_.size())
            terms = {LeaseTerms::Consumer::device, &queues_[q]};
        terms.when_full = random_() % 2 == 0 ? WhenFull::wait : WhenFull::fail;
        const auto leased = fixture_.pool->lease(LeaseRequest{ByteCount{random_size()}, alignment}, terms);
        if (!leased)
            return;
        const ByteRange range = range_of(leased->block);
        EXPECT_TRUE(alignment.divides(range.begin));
        EXPECT_TRUE(fixture_.source->has_memory(leased->block));
        for (const Live& other : live_)
            ASSERT_FALSE(range.overlaps(range_of(other.lease.block)));
        std::erase_if(in_flight_, [](const InFlight& use) { return use.until.is_complete(); });
        for (const InFlight& use : in_flight_)
            ASSERT_TRUE(!use.range.overlaps(range) || waits_for(*leased, use.until));
        if (terms.consumer == LeaseTerms::Consumer::host) {
            EXPECT_TRUE(leased->after.empty());
        }
        live_.push_back({*leased, q < queues_.size() ? &queues_[q] : nullptr});
    }

    static bool waits_for(const Lease& lease, driver::Timepoint until) {
        for (const driver::Timepoint& point : lease.after)
            if (point.queue == until.queue && point.value >= until.value)
                return true;
        return false;
    }

    // Its use depends on what the lease waits for, so that it is complete later.
    void free_one() {
        if (live_.empty())
            return;
        const size_t index = random_() % live_.size();
        const Live gone = live_[index];
        live_[index] = live_.back();
        live_.pop_back();
        std::vector<driver::Timepoint> uses;
        for (size_t q = 0; q < queues_.size(); ++q)
            if (&queues_[q] == gone.queue ? random_() % 4 != 0 : random_() % 5 == 0)
                uses.push_back(queues_[q].at(++submitted_[q]));
        // Timepoints of the lease that no thread has waited for are still in flight.
        for (const driver::Timepoint& point : gone.lease.after)
            if (!point.is_complete())
                uses.push_back(point);
        for (const driver::Timepoint& use : uses)
            in_flight_.push_back({range_of(gone.lease.block), use});
        fixture_.pool->free(gone.lease.block, uses);
    }

    void complete_some() {
        const size_t q = random_() % queues_.size();
        const uint64_t done = queues_[q].completed();
        if (submitted_[q] > done)
            queues_[q].complete(done + 1 + random_() % (submitted_[q] - done));
    }

    std::mt19937_64 random_;
    AllocatorFixture fixture_;
    std::vector<FakeQueue> queues_;
    std::vector<uint64_t> submitted_;
    std::vector<Live> live_;
    std::vector<InFlight> in_flight_;
};

template <class Policy>
class AllocatorProperty : public testing::Test {};
TYPED_TEST_SUITE(AllocatorProperty, AllPolicies);

TYPED_TEST(AllocatorProperty, RandomTraces) {
    for (uint64_t seed = 1; seed <= 20 && !this->HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        Trace{TypeParam::settings, TypeParam::grows, seed}.run(3000);
    }
}

}  // namespace
}  // namespace polder::memory
