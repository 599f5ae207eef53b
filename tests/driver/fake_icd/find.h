// How tests reach the functions that fake_icd.h lists: in the library that Polder has loaded, or will load.
#pragma once

#include <dlfcn.h>

namespace polder::fake_icd {

// Null when the library, or the function, is not there.
template <class Function>
Function find(const char* name) {
    static void* const library = dlopen(POLDER_FAKE_ICD, RTLD_NOW | RTLD_LOCAL);
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

}  // namespace polder::fake_icd
