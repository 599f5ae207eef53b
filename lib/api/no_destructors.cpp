// Static objects inside libpolder.so are never destroyed: Clang's and LLVM's, which are linked into it, and ours.
//
// exit destroys static objects, and other threads of the process go on meanwhile. A build or a launch on one of them would use destroyed
// objects of LLVM. It would fail, and might end with a lock of the allocator held, which exit then waits for.
//
// Compilers emit a call of __cxa_atexit for each static object that has a destructor. The linker resolves all calls inside of this library
// to the function below, before it looks into the C library; polder.map keeps the name inside. Only in a library that has LLVM inside:
// a shared LLVM calls the C library's function. The library is never unloaded (-z nodelete), so the objects stay valid. What must run at
// exit registers itself with on_exit (BuildThreads).
#include <cxxabi.h>

namespace __cxxabiv1 {

extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }

}  // namespace __cxxabiv1
