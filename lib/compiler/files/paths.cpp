#include "paths.h"

#include <base/options.h>

#include <dlfcn.h>
#include <filesystem>
#include <vector>

// Given by meson.build.
#ifndef POLDER_RESOURCE_DIRECTORY
#error "POLDER_RESOURCE_DIRECTORY is not defined"
#endif

namespace polder::compiler {
namespace {

namespace fs = std::filesystem;

constexpr const char* builtins_name = "polder-builtins.bca";

// The folder of the shared object (or program) that this function is in.
fs::path own_directory() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0 || info.dli_fname == nullptr)
        return {};
    std::error_code error;
    const fs::path path = fs::canonical(info.dli_fname, error);
    return error ? fs::path{} : path.parent_path();
}

std::string first_with(const std::vector<fs::path>& places, const char* file) {
    std::error_code error;
    for (const fs::path& place : places)
        if (!place.empty() && fs::exists(place / file, error))
            return place.string();
    return {};
}

std::string list(const std::vector<fs::path>& places) {
    std::string text;
    for (const fs::path& place : places)
        if (!place.empty())
            text += (text.empty() ? "" : ", ") + place.string();
    return text;
}

std::vector<fs::path> resource_places() {
    if (!options::clang_resource_directory().empty())
        return {options::clang_resource_directory()};
    return {POLDER_RESOURCE_DIRECTORY};
}

std::vector<fs::path> builtins_places() {
    if (!options::builtins_directory().empty())
        return {options::builtins_directory()};
    std::vector<fs::path> places;
    const fs::path own = own_directory();
    if (!own.empty()) {
        places.push_back(own / "polder");
        places.push_back(own);
    }
    places.emplace_back(POLDER_BUILD_DIRECTORY);
    places.emplace_back(POLDER_INSTALL_DIRECTORY);
    return places;
}

Paths find() {
    Paths found;
    const auto resources = resource_places();
    found.resource_directory = first_with(resources, "include/opencl-c-base.h");
    if (found.resource_directory.empty())
        found.problem += "error: include/opencl-c-base.h of Clang " POLDER_LLVM_MAJOR
                         " not found (Debian package libclang-common-" POLDER_LLVM_MAJOR "-dev) in " +
                         list(resources) + "\n";
    const auto builtins = builtins_places();
    if (const std::string place = first_with(builtins, builtins_name); !place.empty())
        found.builtins = (fs::path{place} / builtins_name).string();
    else
        found.problem += "error: polder-builtins.bca not found; Polder makes it from libclc (Debian package "
                         "libclc-" POLDER_LLVM_MAJOR ") when it is built; sought in " +
                         list(builtins) + "\n";
    return found;
}

} // namespace

const Paths& paths() {
    static const Paths* const instance = new Paths(find());
    return *instance;
}

} // namespace polder::compiler
