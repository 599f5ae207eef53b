#include <algorithm>
#include <filesystem>
#include <fstream>
#include <proxy/vendors.h>
#include <string_view>

namespace polder::proxy {
namespace {

namespace fs = std::filesystem;

constexpr const char* default_folder = "/etc/OpenCL/vendors";

void add(std::vector<std::string>& icds, std::string name) {
    const size_t end = name.find_last_not_of(" \t\r\n");
    name.resize(end == std::string::npos ? 0 : end + 1);
    if (!name.empty() && std::ranges::find(icds, name) == icds.end())
        icds.push_back(std::move(name));
}

// The first line of an .icd file names the library.
void add_file(std::vector<std::string>& icds, const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    if (std::getline(file, line))
        add(icds, std::move(line));
}

void add_folder(std::vector<std::string>& icds, const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error))
        if (entry->path().extension() == ".icd")
            files.push_back(entry->path());
    std::ranges::sort(files);
    for (const fs::path& file : files)
        add_file(icds, file);
}

void add_filenames(std::vector<std::string>& icds, std::string_view names) {
    while (!names.empty()) {
        const size_t colon = names.find(':');
        add(icds, std::string(names.substr(0, colon)));
        names = colon == std::string_view::npos ? std::string_view{} : names.substr(colon + 1);
    }
}

} // namespace

std::vector<std::string> listed_icds(const Environment& environment) {
    std::vector<std::string> icds;
    if (const char* const names = environment("OCL_ICD_FILENAMES"))
        add_filenames(icds, names);
    const char* vendors = environment("OCL_ICD_VENDORS");
    if (!vendors || !*vendors)
        vendors = environment("OPENCL_VENDOR_PATH");
    if (!vendors || !*vendors)
        vendors = default_folder;
    std::error_code error;
    const fs::path path(vendors);
    if (fs::is_directory(path, error))
        add_folder(icds, path);
    else if (path.extension() == ".icd")
        add_file(icds, path);
    else
        add(icds, vendors);
    return icds;
}

} // namespace polder::proxy
