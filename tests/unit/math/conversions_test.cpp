// All explicit conversions between arithmetic types, with all rounding modes, saturated and not.
#include "conversions.h"

#include <gtest/gtest.h>

namespace polder::math {
namespace {

class Conversions : public ::testing::TestWithParam<const char*> {};

TEST_P(Conversions, OfScalarsFromEveryType_RoundAndSaturateAsAsked) {
    const ConversionReport report = check_conversions_to(GetParam(), 1);
    EXPECT_GE(report.conversions, 50u);
    EXPECT_EQ(report.failures, "");
}

TEST_P(Conversions, OfVectorsFromEveryType_RoundAndSaturateAsAsked) {
    const ConversionReport report = check_conversions_to(GetParam(), 4);
    EXPECT_GE(report.conversions, 50u);
    EXPECT_EQ(report.failures, "");
}

INSTANTIATE_TEST_SUITE_P(To, Conversions,
                         ::testing::Values("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float",
                                           "double"),
                         [](const auto& instance) { return std::string(instance.param); });

} // namespace
} // namespace polder::math
