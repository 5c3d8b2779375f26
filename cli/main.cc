
#include "cli/run.h"

int main(int argc, char** argv) { return muster::cli::run(argc, argv); }
