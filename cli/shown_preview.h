// What a spec would change, as text for a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "base/time.h"

namespace muster::cli {

// The answer of POST /v1/spec/preview (controller/bringup/spec_preview.h). Lines of diffs keep their length,
// others have at most `width`. `now`: for ages.
std::string render_spec_preview(const Json& preview, TimeMs now, size_t width);

// One of a spec's warnings, as the controller answers with them: "new.yaml:8:3: images.spare: ... [CODE]".
std::string warning_line(const Json& warning);

// The width of text on standard output: the terminal's, else 80.
size_t text_width();

}  // namespace muster::cli
