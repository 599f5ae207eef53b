// Programs from the SPIR-V modules that the build makes; POLDER_TEST_MODULES is their folder.
#pragma once

#include "fixture.h"

#include <fstream>
#include <iterator>
#include <string>

namespace polder::test {

inline std::string file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    EXPECT_TRUE(stream) << path;
    return {std::istreambuf_iterator<char>(stream), {}};
}

class ModuleTest : public ContextTest {
protected:
    OwnedProgram build_module(const std::string& name) {
        const std::string bytes = file(POLDER_TEST_MODULES "/" + name + ".spv");
        cl_int error = CL_INVALID_VALUE;
        OwnedProgram made = clCreateProgramWithIL(context, bytes.data(), bytes.size(), &error);
        EXPECT_EQ(error, CL_SUCCESS);
        if (clBuildProgram(made, 0, nullptr, "", nullptr, nullptr) != CL_SUCCESS)
            ADD_FAILURE() << build_log(made);
        return made;
    }
};

}  // namespace polder::test
