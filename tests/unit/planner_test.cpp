// The planner by itself: plain cases. Random ones: planner_property_test.cpp.
#include "residency/planner.h"

#include <gtest/gtest.h>

namespace polder::memory {
namespace {

constexpr SpaceId host{0}, a{1}, b{2}, c{3}, d{4};

class Planner : public ::testing::Test {
protected:
    void write(ByteRange range, SpaceId space) {
        residency.prepare({&range, 1}, 1);
        residency.commit_write({&range, 1}, space, next_version(residency, range), {});
        residency.merge({&range, 1});
    }
    void make_resident(ByteRange range, SpaceId from, SpaceId to) {
        residency.prepare({&range, 1}, 2);
        residency.commit_transfer({&range, 1}, {from, to, {}, {}});
        residency.merge({&range, 1});
    }
    [[nodiscard]] Plan planned(std::vector<PlannedUse> uses, SpaceId target) { return plan(uses, target, topology); }
    Residency residency{ByteCount{100}};
    Topology topology;
};

TEST_F(Planner, BytesInPlaceMoveNothing) {
    write({0, 100}, a);
    const Plan result = planned({{&residency, {0, 100}, Access::read_write}}, a);
    EXPECT_TRUE(result.transfers.empty());
    ASSERT_EQ(result.versions.size(), 1u);
    EXPECT_EQ(result.versions[0].next, Version{2});
}

TEST_F(Planner, OnlyStaleBytesOfTheRangeMove) {
    write({0, 100}, a);
    make_resident({0, 100}, a, b);
    write({40, 60}, a);
    const Plan result = planned({{&residency, {50, 100}, Access::read}}, b);
    ASSERT_EQ(result.transfers.size(), 1u);
    EXPECT_EQ(result.transfers[0].range, (ByteRange{50, 60}));
    EXPECT_EQ(result.transfers[0].from, a);
    EXPECT_TRUE(result.versions.empty());
}

TEST_F(Planner, NeighboursFromOneSourceAreOneTransfer) {
    write({0, 50}, a);
    write({50, 100}, a);
    make_resident({0, 50}, a, host);
    const Plan result = planned({{&residency, {0, 50}, Access::read}, {&residency, {50, 100}, Access::read}}, b);
    EXPECT_EQ(result.transfers.size(), 2u);
    const Plan whole = planned({{&residency, {0, 100}, Access::read}}, host);
    ASSERT_EQ(whole.transfers.size(), 1u);
    EXPECT_EQ(whole.transfers[0].range, (ByteRange{50, 100}));
}

TEST_F(Planner, HostIsPreferredToStagingAndAPeerToTheHost) {
    write({0, 100}, a);
    make_resident({0, 100}, a, host);
    EXPECT_EQ(planned({{&residency, {0, 100}, Access::read}}, b).transfers[0].from, host);
    topology.add_peer(b, a);
    EXPECT_EQ(planned({{&residency, {0, 100}, Access::read}}, b).transfers[0].from, a);
}

TEST_F(Planner, OfSeveralPeersTheNearestIsTheSource) {
    write({0, 100}, a);
    for (const SpaceId space : {host, b, c})
        make_resident({0, 100}, a, space);
    const auto source = [&] { return planned({{&residency, {0, 100}, Access::read}}, d).transfers[0].from; };
    topology.add_peer(d, a, {.hops = 2, .bytes_per_second = 400});
    EXPECT_EQ(source(), a);
    topology.add_peer(d, b, {.hops = 1, .bytes_per_second = 100});
    EXPECT_EQ(source(), b);
    topology.add_peer(d, c, {.hops = 1, .bytes_per_second = 200});
    EXPECT_EQ(source(), c);
    // c has only a part of the bytes: the rest is read from the next peer.
    write({50, 100}, a);
    make_resident({50, 100}, a, b);
    const Plan parts = planned({{&residency, {0, 100}, Access::read}}, d);
    ASSERT_EQ(parts.transfers.size(), 2u);
    EXPECT_EQ(parts.transfers[0].from, c);
    EXPECT_EQ(parts.transfers[1].from, b);
}

TEST_F(Planner, OfPeersThatAreEquallyNearTheFirstIsTheSource) {
    write({0, 100}, b);
    make_resident({0, 100}, b, a);
    topology.add_peer(d, a);
    topology.add_peer(d, b);
    EXPECT_EQ(planned({{&residency, {0, 100}, Access::read}}, d).transfers[0].from, a);
}

TEST_F(Planner, OverlappingUsesOfOneStorageMoveBytesOnce) {
    write({0, 100}, a);
    const Plan result = planned({{&residency, {0, 60}, Access::read},
                                 {&residency, {40, 100}, Access::read_write},
                                 {&residency, {0, 100}, Access::read}},
                                b);
    uint64_t bytes = 0;
    for (const PlannedTransfer& transfer : result.transfers)
        bytes += transfer.range.size();
    EXPECT_EQ(bytes, 100u);
}

TEST_F(Planner, UntouchedAndOverwrittenArgumentsMoveNothing) {
    write({0, 100}, a);
    EXPECT_TRUE(planned({{&residency, {0, 100}, Access::none}}, b).transfers.empty());
    EXPECT_TRUE(planned({{&residency, {0, 100}, Access::none}}, b).versions.empty());
    EXPECT_TRUE(planned({{&residency, {0, 100}, Access::overwrite}}, b).transfers.empty());
}

TEST_F(Planner, VersionsGrowBeyondThoseOfEveryPiece) {
    write({0, 50}, a);
    write({0, 10}, a);
    const Plan result = planned({{&residency, {0, 100}, Access::write}}, a);
    EXPECT_EQ(result.versions[0].next, Version{3});
}

} // namespace
} // namespace polder::memory
