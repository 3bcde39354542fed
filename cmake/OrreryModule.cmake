# orrery_module(NAME [DEPS module...] [LINK target...])
#
# Declares the library of src/NAME. Its place in the ladder is the order of the calls: a module knows
# only those declared before it. Configuring fails on an upward or unknown DEPS entry, and on any
# `#include "module/..."` of a module that is neither the module itself nor among its DEPS.
#
# With ORRERY_TESTS it also builds
#   NAME_test        every src/NAME/*_test.cpp; under ThreadSanitizer only the files with a test that
#                    names Threads, and no program if there is none,
#   NAME_link_test   a program of that module and its DEPS alone, whole archive: nothing may be undefined.

set_property(GLOBAL PROPERTY ORRERY_LADDER "")

function(orrery_check_includes name deps)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.hpp
       ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
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

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
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
  orrery_precompile(orrery_${name})
  if(ORRERY_TESTS)
    orrery_module_tests(${name} "${tests}")
  endif()
endfunction()

# orrery_precompile(TARGET)
#
# With ORRERY_PRECOMPILE, gives a library or program what most sources include, read once: the library
# of the lowest module compiles cmake/precompiled.hpp, the others use what it made.
function(orrery_precompile target)
  if(ORRERY_PRECOMPILE AND target STREQUAL "orrery_base")
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.hpp)
  elseif(ORRERY_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM orrery_base)
  endif()
endfunction()

# The same for a test program, with gtest. No test program owns what is precompiled: the others
# would have to wait for it.
function(orrery_precompile_test target)
  if(NOT ORRERY_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET orrery_precompiled_tests)
    set(empty ${CMAKE_BINARY_DIR}/generated/precompiled_tests.cpp)
    file(GENERATE OUTPUT ${empty} CONTENT "")
    add_library(orrery_precompiled_tests OBJECT ${empty})
    target_link_libraries(orrery_precompiled_tests PRIVATE orrery_base GTest::gtest)
    target_precompile_headers(orrery_precompiled_tests PRIVATE
      ${CMAKE_SOURCE_DIR}/cmake/precompiled.hpp <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM orrery_precompiled_tests)
endfunction()

# orrery_tests(TARGET PREFIX)
#
# Precompiles the headers of a gtest program and tells CTest of it twice: each test by its own name (label `single`), for a person who
# picks some, and the whole as a few shards (label `shard`), because a process a test costs more than
# most tests. A shard prints only what fails, so its output names the failing tests.
function(orrery_tests target prefix)
  orrery_precompile_test(${target})
  gtest_discover_tests(${target} TEST_PREFIX ${prefix} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS single)
  set(shards 4)
  foreach(index RANGE 1 ${shards})
    math(EXPR zero_based "${index} - 1")
    add_test(NAME ${target}.${index}of${shards} COMMAND ${target} --gtest_brief=1)
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

function(orrery_module_tests name tests)
  if(ORRERY_SANITIZE STREQUAL "thread")
    orrery_keep_thread_tests(tests)
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE orrery_${name} GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      ORRERY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    orrery_tests(${name}_test ${name}.)
  endif()

  set(main ${CMAKE_BINARY_DIR}/${name}_link_test_main.cpp)
  file(GENERATE OUTPUT ${main} CONTENT "int main() { return 0; }\n")
  add_executable(${name}_link_test ${main})
  target_link_libraries(${name}_link_test PRIVATE
    -Wl,--whole-archive orrery_${name} -Wl,--no-whole-archive)
  add_test(NAME ${name}.links_alone COMMAND ${name}_link_test)
endfunction()
