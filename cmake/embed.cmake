# muster_embed(out.cc namespace name file [name file]...)
# Makes each file's text a C string constant `extern const char* const NAME` in a generated source: pure code must not read
# files. Editing a file runs CMake again; the source is rewritten only when its text changed.
function(muster_embed out namespace)
  set(text "namespace ${namespace} {\n")
  while(ARGN)
    list(POP_FRONT ARGN name file)
    file(READ ${file} content)
    string(APPEND text "extern const char* const ${name};\nconst char* const ${name} = R\"~~~~(${content})~~~~\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endwhile()
  string(APPEND text "}\n")
  file(GENERATE OUTPUT ${out} CONTENT "${text}")
endfunction()

muster_embed(${CMAKE_BINARY_DIR}/embedded/schemas.cc muster::embedded
  spec_schema ${CMAKE_SOURCE_DIR}/schema/spec.schema.json
  playbook_schema ${CMAKE_SOURCE_DIR}/schema/playbook.schema.json
  drive_models ${CMAKE_SOURCE_DIR}/hardware/drives.yaml
  modules ${CMAKE_SOURCE_DIR}/schema/modules.json)
target_sources(muster_controller_spec PRIVATE ${CMAKE_BINARY_DIR}/embedded/schemas.cc)

muster_embed(${CMAKE_BINARY_DIR}/embedded/xids.cc muster::embedded xids ${CMAKE_SOURCE_DIR}/hardware/xids.yaml)
target_sources(muster_kernels_counters PRIVATE ${CMAKE_BINARY_DIR}/embedded/xids.cc)

# What is shipped by name, for who checks a spec where no playbooks are installed.
function(muster_names out folder)
  file(GLOB found CONFIGURE_DEPENDS ${folder}/*.yaml)
  list(SORT found)
  set(names "")
  foreach(file ${found})
    get_filename_component(name ${file} NAME_WLE)
    string(APPEND names "${name} ")
  endforeach()
  set(${out} "${names}" PARENT_SCOPE)
endfunction()
muster_names(playbook_names ${CMAKE_SOURCE_DIR}/playbooks)
muster_names(profile_names ${CMAKE_SOURCE_DIR}/playbooks/acceptance)
# And which of them are for one distribution only: a line for each, "NAME DISTRIBUTION what to do elsewhere".
set(playbooks_only_for "")
file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/playbooks/*.yaml)
list(SORT found)
foreach(file ${found})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(name ${file} NAME_WLE)
  file(STRINGS ${file} distribution REGEX "^distribution: ")
  file(STRINGS ${file} elsewhere REGEX "^elsewhere: ")
  if(distribution)
    string(REPLACE "distribution: " "" distribution "${distribution}")
    string(REPLACE "elsewhere: " "" elsewhere "${elsewhere}")
    string(APPEND playbooks_only_for "${name} ${distribution} ${elsewhere}\\n")
  endif()
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/embedded/shipped_names.cc CONTENT
  "namespace muster::embedded {\nextern const char* const playbook_names;\nextern const char* const profile_names;\nextern const char* const playbooks_only_for;\nconst char* const playbook_names = \"${playbook_names}\";\nconst char* const profile_names = \"${profile_names}\";\nconst char* const playbooks_only_for = \"${playbooks_only_for}\";\n}\n")
target_sources(muster_controller_spec_reader PRIVATE ${CMAKE_BINARY_DIR}/embedded/shipped_names.cc)

# Migrations are numbered from 0001 without gaps; position n-1 of the list is migration n.
file(GLOB migrations CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schema/migrations/*.sql)
list(SORT migrations)
set(pairs "")
set(list_text "")
foreach(file ${migrations})
  get_filename_component(name ${file} NAME_WE)
  list(APPEND pairs migration_${name} ${file})
  string(APPEND list_text "  muster::embedded::migration_${name},\n")
endforeach()
muster_embed(${CMAKE_BINARY_DIR}/embedded/migrations.cc muster::embedded ${pairs})
string(REGEX REPLACE "[^\n]*(migration_[0-9a-z_]+),\n" "extern const char* const \\1;\n" declared "${list_text}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/embedded/migration_list.cc CONTENT
  "namespace muster::embedded {\n${declared}extern const char* const migrations[];\nconst char* const migrations[] = {\n${list_text}  nullptr};\n}\n")
target_sources(muster_controller_store PRIVATE ${CMAKE_BINARY_DIR}/embedded/migrations.cc ${CMAKE_BINARY_DIR}/embedded/migration_list.cc)

# Fuzzers, on demand: scripts/fuzz.sh. The preset instruments the libraries too, so that the fuzzer sees where its input leads.
option(MUSTER_FUZZ "build the fuzz targets (clang)" OFF)
if(MUSTER_FUZZ)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
  foreach(source ${fuzzers})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE muster_controller_executor muster_controller_spec_reader)
  endforeach()
endif()
