// The static objects in libpolder.so are never destroyed: those of Clang and LLVM, which are linked into it, and those of Polder.
//
// exit() destroys static objects while other threads of the process continue. A build or a launch on such a thread would use destroyed
// objects of LLVM. It would crash, perhaps while it holds a lock of the allocator, for which exit() would then wait forever.
//
// Compilers emit a call of __cxa_atexit for each static object that has a destructor. The linker resolves these calls in this library
// to the function below instead of the C library's; polder.map keeps the name hidden. This only works when LLVM is linked into the library:
// a shared LLVM calls the C library's function. The library is never unloaded (-z nodelete), so the objects stay valid. Code that must run
// at exit registers itself with on_exit (BuildThreads).
#include <cxxabi.h>

namespace __cxxabiv1 {

extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }

}  // namespace __cxxabiv1
