# orrery_module(NAME [DEPS module...] [LINK target...])
#
# Declares the library of src/NAME and of the folders in it. Its place in the ladder is the order of the
# calls: a module knows only those declared before it. Configuring fails on an upward or unknown DEPS
# entry, and on any `#include "module/..."` of a module that is neither the module itself nor among its
# DEPS.
#
# With ORRERY_TESTS it also builds
#   NAME_test        every *_test.cpp of it; under ThreadSanitizer only the files with a test that
#                    names Threads, and no program if there is none,
#   NAME_link_test   a program of that module and its DEPS alone, whole archive: nothing may be undefined.

set_property(GLOBAL PROPERTY ORRERY_LADDER "")

function(orrery_check_includes name deps)
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.hpp ${folder}/*.cpp ${folder}/*/*.hpp
       ${folder}/*/*.cpp)
  file(GLOB modules RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/*)
  foreach(source IN LISTS sources)
    # Editing an include must run this check again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} includes REGEX "^#include \"[a-z_]+/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include \"([a-z_]+)/.*" "\\1" target "${line}")
      if(target IN_LIST modules AND NOT target STREQUAL name AND NOT target IN_LIST deps)
        file(RELATIVE_PATH shown ${CMAKE_SOURCE_DIR} ${source})
        message(FATAL_ERROR "${shown}: module '${name}' may not include '${target}' (${line}); "
                            "it may use: ${deps}")
      endif()
    endforeach()
  endforeach()
endfunction()

function(orrery_module name)
  cmake_parse_arguments(arg "" "" "DEPS;LINK" ${ARGN})
  get_property(ladder GLOBAL PROPERTY ORRERY_LADDER)
  foreach(dep IN LISTS arg_DEPS)
    if(NOT dep IN_LIST ladder)
      message(FATAL_ERROR "module '${name}' depends on '${dep}', which is not below it; "
                          "below it are: ${ladder}")
    endif()
  endforeach()
  orrery_check_includes(${name} "${arg_DEPS}")
  set_property(GLOBAL APPEND PROPERTY ORRERY_LADDER ${name})

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp
       ${CMAKE_SOURCE_DIR}/src/${name}/*/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(libraries ${arg_LINK})
  foreach(dep IN LISTS arg_DEPS)
    list(APPEND libraries orrery_${dep})
  endforeach()

  add_library(orrery_${name} STATIC ${sources})
  target_include_directories(orrery_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(orrery_${name} PUBLIC ${libraries})
  set(level base)
  if(name STREQUAL "scheduler" OR "scheduler" IN_LIST arg_DEPS)
    set(level core)
  endif()
  orrery_precompile(orrery_${name} ${level})
  orrery_compile_together(orrery_${name})
  if(ORRERY_TESTS)
    orrery_module_tests(${name} "${tests}" ${level})
  endif()
endfunction()

# With ORRERY_TOGETHER, sources that have no name of their own in common (scripts/check --batches) are
# compiled in one go: a build from nothing takes a third of the time, a change more.
if(ORRERY_TOGETHER)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/check --batches
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE orrery_batches
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" orrery_batches "${orrery_batches}")
  foreach(line IN LISTS orrery_batches)
    if(line MATCHES "^(.+)\t([A-Za-z0-9_]+)$")
      set_property(GLOBAL PROPERTY "ORRERY_BATCH_${CMAKE_SOURCE_DIR}/${CMAKE_MATCH_1}"
                   ${CMAKE_MATCH_2})
    endif()
  endforeach()
endif()

function(orrery_compile_together target)
  if(NOT ORRERY_TOGETHER)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE)
    get_property(batch GLOBAL PROPERTY "ORRERY_BATCH_${path}")
    if(batch)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# orrery_precompile(TARGET LEVEL)
#
# With ORRERY_PRECOMPILE, gives a library or program what most sources of its level include, read once:
# `base` is cmake/precompiled.hpp, compiled by the library of the lowest module; `core` adds
# cmake/precompiled_core.hpp, for the modules from the scheduler up, compiled by the scheduler's;
# `command` adds cmake/precompiled_command.hpp, for the command line, compiled by itself.
function(orrery_precompile target level)
  if(NOT ORRERY_PRECOMPILE)
    return()
  endif()
  set(owner_of_base orrery_base)
  set(owner_of_core orrery_scheduler)
  set(owner_of_command orrery)
  if(target STREQUAL owner_of_${level})
    orrery_precompiled_headers(headers ${level})
    target_precompile_headers(${target} PRIVATE ${headers})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner_of_${level}})
  endif()
endfunction()

function(orrery_precompiled_headers variable level)
  set(headers ${CMAKE_SOURCE_DIR}/cmake/precompiled.hpp)
  if(NOT level STREQUAL "base")
    list(APPEND headers ${CMAKE_SOURCE_DIR}/cmake/precompiled_core.hpp)
  endif()
  if(level STREQUAL "command")
    list(APPEND headers ${CMAKE_SOURCE_DIR}/cmake/precompiled_command.hpp)
  endif()
  set(${variable} ${headers} PARENT_SCOPE)
endfunction()

# The same for a test program, with gtest. No test program owns what is precompiled: the others
# would have to wait for it.
function(orrery_precompile_test target level)
  if(NOT ORRERY_PRECOMPILE)
    return()
  endif()
  set(owner orrery_precompiled_tests_${level})
  if(NOT TARGET ${owner})
    set(empty ${CMAKE_BINARY_DIR}/generated/precompiled_tests_${level}.cpp)
    file(GENERATE OUTPUT ${empty} CONTENT "")
    add_library(${owner} OBJECT ${empty})
    set(highest_of_base orrery_base)
    set(highest_of_core orrery_control)
    target_link_libraries(${owner} PRIVATE ${highest_of_${level}} GTest::gtest)
    orrery_precompiled_headers(headers ${level})
    target_precompile_headers(${owner} PRIVATE ${headers} <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# orrery_tests(TARGET PREFIX LEVEL)
#
# Precompiles the headers of a gtest program (LEVEL as above) and tells CTest of it twice: each test by
# its own name (label `single`), for a person who picks some, and the whole as a few shards (label
# `shard`), because a process a test costs more than most tests. CTest shows the output of a shard that
# fails; its last line names the test that ran when the time limit ended it.
function(orrery_tests target prefix level)
  orrery_precompile_test(${target} ${level})
  orrery_compile_together(${target})
  gtest_discover_tests(${target} TEST_PREFIX ${prefix} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS single)
  set(shards 4)
  foreach(index RANGE 1 ${shards})
    math(EXPR zero_based "${index} - 1")
    add_test(NAME ${target}.${index}of${shards} COMMAND ${target})
    set_tests_properties(${target}.${index}of${shards} PROPERTIES LABELS shard
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${zero_based}")
  endforeach()
endfunction()

# Leaves in the list VARIABLE the files that have a test that names Threads.
function(orrery_keep_thread_tests variable)
  set(kept "")
  foreach(source IN LISTS ${variable})
    file(STRINGS ${source} found REGEX "^TEST.*Threads")
    if(found)
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()

function(orrery_module_tests name tests level)
  if(ORRERY_SANITIZE STREQUAL "thread")
    orrery_keep_thread_tests(tests)
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE orrery_${name} GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      ORRERY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    orrery_tests(${name}_test ${name}. ${level})
  endif()

  set(main ${CMAKE_BINARY_DIR}/${name}_link_test_main.cpp)
  file(GENERATE OUTPUT ${main} CONTENT "int main() { return 0; }\n")
  add_executable(${name}_link_test ${main})
  target_link_libraries(${name}_link_test PRIVATE
    -Wl,--whole-archive orrery_${name} -Wl,--no-whole-archive)
  add_test(NAME ${name}.links_alone COMMAND ${name}_link_test)
endfunction()
