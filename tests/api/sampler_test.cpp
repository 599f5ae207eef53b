// Samplers: creation, queries, reference counts. OpenCL 3.0, section 5.7.
#include "support/images.h"

namespace polder::test {
namespace {

using Samplers = ImageTest;

template <class T>
T sampler_info(cl_sampler sampler, cl_sampler_info name) {
    T value{};
    EXPECT_EQ(clGetSamplerInfo(sampler, name, sizeof value, &value, nullptr), CL_SUCCESS);
    return value;
}

TEST_F(Samplers, ReportWhatTheyWereCreatedWith) {
    for (const cl_bool normalized : {CL_TRUE, CL_FALSE})
        for (const cl_addressing_mode address : {CL_ADDRESS_NONE, CL_ADDRESS_CLAMP_TO_EDGE, CL_ADDRESS_CLAMP,
                                                 CL_ADDRESS_REPEAT, CL_ADDRESS_MIRRORED_REPEAT})
            for (const cl_filter_mode filter : {CL_FILTER_NEAREST, CL_FILTER_LINEAR}) {
                cl_int error = CL_INVALID_VALUE;
                const OwnedSampler sampler = clCreateSampler(context, normalized, address, filter, &error);
                ASSERT_EQ(error, CL_SUCCESS);
                EXPECT_EQ(sampler_info<cl_bool>(sampler, CL_SAMPLER_NORMALIZED_COORDS), normalized);
                EXPECT_EQ(sampler_info<cl_addressing_mode>(sampler, CL_SAMPLER_ADDRESSING_MODE), address);
                EXPECT_EQ(sampler_info<cl_filter_mode>(sampler, CL_SAMPLER_FILTER_MODE), filter);
                EXPECT_EQ(sampler_info<cl_context>(sampler, CL_SAMPLER_CONTEXT), static_cast<cl_context>(context));
                size_t size = 1;
                EXPECT_EQ(clGetSamplerInfo(sampler, CL_SAMPLER_PROPERTIES, 0, nullptr, &size), CL_SUCCESS);
                EXPECT_EQ(size, 0u);
            }
}

TEST_F(Samplers, PropertiesHaveDefaults) {
    cl_int error = CL_INVALID_VALUE;
    const OwnedSampler plain = clCreateSamplerWithProperties(context, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(sampler_info<cl_bool>(plain, CL_SAMPLER_NORMALIZED_COORDS), cl_bool{CL_TRUE});
    EXPECT_EQ(sampler_info<cl_addressing_mode>(plain, CL_SAMPLER_ADDRESSING_MODE),
              cl_addressing_mode{CL_ADDRESS_CLAMP});
    EXPECT_EQ(sampler_info<cl_filter_mode>(plain, CL_SAMPLER_FILTER_MODE), cl_filter_mode{CL_FILTER_NEAREST});
    const cl_sampler_properties some[] = {CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, CL_SAMPLER_NORMALIZED_COORDS,
                                          CL_FALSE, 0};
    const OwnedSampler given = clCreateSamplerWithProperties(context, some, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(sampler_info<cl_bool>(given, CL_SAMPLER_NORMALIZED_COORDS), cl_bool{CL_FALSE});
    EXPECT_EQ(sampler_info<cl_addressing_mode>(given, CL_SAMPLER_ADDRESSING_MODE),
              cl_addressing_mode{CL_ADDRESS_CLAMP});
    EXPECT_EQ(sampler_info<cl_filter_mode>(given, CL_SAMPLER_FILTER_MODE), cl_filter_mode{CL_FILTER_LINEAR});
    cl_sampler_properties reported[5] = {};
    EXPECT_EQ(clGetSamplerInfo(given, CL_SAMPLER_PROPERTIES, sizeof reported, reported, nullptr), CL_SUCCESS);
    EXPECT_EQ(std::memcmp(reported, some, sizeof some), 0);
}

TEST_F(Samplers, InvalidArgumentsAreRefused) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateSampler(foreign_handle<cl_context>(context), CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_LINEAR, &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(clCreateSampler(context, 7, CL_ADDRESS_NONE, CL_FILTER_LINEAR, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE - 1, CL_FILTER_LINEAR, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_LINEAR + 1, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    for (const std::vector<cl_sampler_properties>& wrong :
         {std::vector<cl_sampler_properties>{1, 1, 0},
          {CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0},
          {CL_SAMPLER_FILTER_MODE, CL_ADDRESS_NONE, 0},
          {CL_SAMPLER_ADDRESSING_MODE, CL_FILTER_LINEAR, 0},
          {CL_SAMPLER_NORMALIZED_COORDS, 2, 0}}) {
        EXPECT_EQ(clCreateSamplerWithProperties(context, wrong.data(), &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_VALUE);
    }
}

TEST_F(Samplers, AreReferenceCounted) {
    cl_int error = CL_INVALID_VALUE;
    const cl_sampler sampler = clCreateSamplerWithProperties(context, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(clRetainSampler(sampler), CL_SUCCESS);
    EXPECT_EQ(sampler_info<cl_uint>(sampler, CL_SAMPLER_REFERENCE_COUNT), 2u);
    size_t size = 0;
    EXPECT_EQ(clGetSamplerInfo(sampler, CL_SAMPLER_REFERENCE_COUNT, 1, &size, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetSamplerInfo(sampler, 0, 0, nullptr, &size), CL_INVALID_VALUE);
    EXPECT_EQ(clReleaseSampler(sampler), CL_SUCCESS);
    EXPECT_EQ(clReleaseSampler(sampler), CL_SUCCESS);
    EXPECT_EQ(clReleaseSampler(sampler), CL_INVALID_SAMPLER);
}

} // namespace
} // namespace polder::test
