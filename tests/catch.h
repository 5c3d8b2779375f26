// One door to Catch2: version 2 on Debian 12, version 3 on Debian 13.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 puts it there itself
#else
#include <catch2/catch.hpp>
#endif
