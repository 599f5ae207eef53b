// Which ICDs the OpenCL loader would load: the libraries that .icd files name. Reads the environment and files; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace polder::proxy {

// Null for a variable that is not set.
using Environment = std::function<const char*(const char* name)>;

// In the loader's order: OCL_ICD_FILENAMES, then OCL_ICD_VENDORS or OPENCL_VENDOR_PATH (a folder of .icd files, one such
// file, or a library), else /etc/OpenCL/vendors. Each library once. Polder is among them.
[[nodiscard]] std::vector<std::string> listed_icds(const Environment& environment);

}  // namespace polder::proxy
