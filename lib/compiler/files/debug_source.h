// Files with the source of programs that are built with -g, for debuggers:
// <cache directory>/sources/<hash of the source>/program.cl. Without a cache directory there are no files, and a debugger
// shows line numbers only. Any thread.
#pragma once

#include <string>

namespace polder::compiler {

inline constexpr const char* source_name = "program.cl";

// The folder for `source`; empty when there is none. Writes nothing.
[[nodiscard]] std::string debug_source_directory(const std::string& source);
// Writes the file unless it is there. A failed write is reported in the log.
void keep_debug_source(const std::string& source);

}  // namespace polder::compiler
