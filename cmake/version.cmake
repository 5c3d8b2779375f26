# The version that programs, packages, reports and the API carry: 0.1.0+20261124.080945.gb953f06. That is the project's version, then date
# and time (UTC) and hash of the commit; ".dirty" behind it where the tree is not the commit's. `apt install ./x.deb` refuses a lower version,
# so commits have to sort: by the second, since a date alone would leave those of one day to their hashes, and a number of commits
# is not to be had in a shallow clone. Those of one second (a rebase) are still sorted by hash.
#
#   cmake -D SOURCE=TREE -D BASE=0.1.0 -D OUT=version.cc -P version.cmake   writes base/version.h's constant, if it is another one than before
#   cmake -D SOURCE=TREE -D RECORD=FILE -P version.cmake                    writes the commit alone, as cmake/commit.txt of a copy without git
#   include(version.cmake), muster_built_version(OUT version.cc)            the version of what was built, for packing it
#   include(version.cmake), muster_cuda_version(OUT VERSION 13)             0.1.0+20261124.080945.gb953f06.cuda13, of muster-accept-gpu's package
#
# Which commit: MUSTER_COMMIT of the environment ("SECONDS HASH", for packaging from another repository); else git's, where TREE is the top of a
# repository and not merely inside of one; else cmake/commit.txt, which `git archive` fills in. Without any of them it is 0.1.0 alone.
find_program(MUSTER_GIT git)

# In a repository of another owner too: a build as root trusts the tree anyway, it runs what is in it.
macro(muster_git out)
  execute_process(
    COMMAND ${MUSTER_GIT} -c safe.directory=* -c log.showSignature=false --no-optional-locks -C ${source} ${ARGN}
    OUTPUT_VARIABLE ${out} OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE git_status)
endmacro()

# "SECONDS HASH" or "SECONDS HASH dirty"; empty when git knows nothing of this tree. What goes into no program or package (tests and their
# records, documents) makes no tree dirty; of files that git does not know those do that a build picks up.
function(muster_commit_of_git out source)
  set(${out} "" PARENT_SCOPE)
  # Of a hook or `git rebase --exec`, whose repository need not be this one.
  unset(ENV{GIT_DIR})
  unset(ENV{GIT_WORK_TREE})
  unset(ENV{GIT_INDEX_FILE})
  muster_git(top rev-parse --show-toplevel)
  if(NOT git_status EQUAL 0)
    return()
  endif()
  file(REAL_PATH "${top}" top)
  file(REAL_PATH "${source}" here)
  if(NOT top STREQUAL here)
    return()
  endif()
  muster_git(commit log -1 "--format=%ct %H")
  if(NOT git_status EQUAL 0)
    return()
  endif()
  muster_git(changed status --porcelain --untracked-files=no -- . ":!docs" ":!tests" ":!bench" ":!*.md")
  muster_git(strange ls-files --others --exclude-standard --
    agent base cli cmake controller hardware images kernels lab playbooks schema systemd)
  if(NOT "${changed}${strange}" STREQUAL "")
    string(APPEND commit " dirty")
  endif()
  set(${out} "${commit}" PARENT_SCOPE)
endfunction()

function(muster_commit out source)
  set(commit "$ENV{MUSTER_COMMIT}")
  if(commit STREQUAL "")
    muster_commit_of_git(commit ${source})
  endif()
  if(commit STREQUAL "" AND EXISTS ${source}/cmake/commit.txt)
    file(STRINGS ${source}/cmake/commit.txt commit LIMIT_COUNT 1)
  endif()
  set(${out} "" PARENT_SCOPE)
  if(commit MATCHES "^[0-9]+ [0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*( dirty)?$")
    set(${out} "${commit}" PARENT_SCOPE)
  endif()
endfunction()

function(muster_version out source base)
  muster_commit(commit ${source})
  set(version ${base})
  if(commit MATCHES "^([0-9]+) (.......)[0-9a-f]*( dirty)?$")
    set(hash ${CMAKE_MATCH_2})
    set(dirty "${CMAKE_MATCH_3}")
    set(before "$ENV{SOURCE_DATE_EPOCH}")
    set(ENV{SOURCE_DATE_EPOCH} ${CMAKE_MATCH_1})  # the only time but now that CMake can write
    string(TIMESTAMP time "%Y%m%d.%H%M%S" UTC)
    set(ENV{SOURCE_DATE_EPOCH} "${before}")
    string(REPLACE " " "." dirty "${dirty}")
    set(version ${base}+${time}.g${hash}${dirty})
  endif()
  set(${out} ${version} PARENT_SCOPE)
endfunction()

function(muster_built_version out file)
  set(text "")
  if(EXISTS ${file})
    file(READ ${file} text)
  endif()
  if(NOT text MATCHES "kProgramVersion = \"([^\"]+)\"")
    message(FATAL_ERROR "nothing was built yet: ${file} holds no version")
  endif()
  set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# Of what is built with a CUDA toolkit: one commit's package for CUDA 13 is another, and a later, version than the one for 12. Without
# a commit it stays below those that have one.
function(muster_cuda_version out version major)
  if(version MATCHES "[+]")
    set(${out} ${version}.cuda${major} PARENT_SCOPE)
  else()
    set(${out} ${version}+0.cuda${major} PARENT_SCOPE)
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE AND DEFINED SOURCE)
  if(DEFINED RECORD)
    muster_commit(text ${SOURCE})
    string(APPEND text "\n")
    set(OUT ${RECORD})
  else()
    muster_version(version ${SOURCE} ${BASE})
    set(text "#include \"base/version.h\"\nnamespace muster {\nconst char* const kProgramVersion = \"${version}\";\n}\n")
  endif()
  # Untouched when it is the same: nothing is compiled or linked for it then.
  set(before "")
  if(EXISTS ${OUT})
    file(READ ${OUT} before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE ${OUT} "${text}")
  endif()
endif()
