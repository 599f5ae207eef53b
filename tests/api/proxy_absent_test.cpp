// POCL_DEVICES="cpu proxy" where the proxy cannot be opened: Polder's other devices exist and work.
#include "support/fixture.h"

namespace polder::test {
namespace {

using ProxyAbsent = ContextTest;

TEST_F(ProxyAbsent, TheProcessorIsThereAlone) {
    ASSERT_EQ(devices.size(), 1u);
    cl_device_type type = 0;
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_device_type{CL_DEVICE_TYPE_CPU});
    const OwnedMem buffer = make_buffer(64);
    write(buffer, std::vector<cl_int>(16, 5));
    EXPECT_EQ(read<cl_int>(buffer, 16), std::vector<cl_int>(16, 5));
}

}  // namespace
}  // namespace polder::test
