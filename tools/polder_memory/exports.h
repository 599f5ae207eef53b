// What polder-memory writes besides tables: a page for a browser, and other viewers' formats.
#pragma once

#include "trace/trace_file.h"

#include <ostream>

namespace polder::tool {

// One HTML page with the trace in it; loads nothing.
void write_page(const trace::TraceFile& trace, std::ostream& out);
// Chrome's trace event format in JSON, which Perfetto opens.
void write_perfetto(const trace::TraceFile& trace, std::ostream& out);
// The snapshot that PyTorch's memory viewer (https://pytorch.org/memory_viz) and torch.cuda._memory_viz open: a pickle.
void write_pytorch(const trace::TraceFile& trace, std::ostream& out);

// Writes `text` as a JSON string, in quotes.
void write_json_string(std::string_view text, std::ostream& out);

}  // namespace polder::tool
