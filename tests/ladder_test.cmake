# Shows that the configure step refuses an upward include and an upward dependency: the repository's
# own CMake files over a copy of its sources, as they are (must configure) and spoilt (must not).
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
foreach(part CMakeLists.txt CMakePresets.json cmake src apps catalog packaging python)
  file(COPY ${ROOT}/${part} DESTINATION ${SCRATCH}/tree)
endforeach()

function(configure expectation message)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SCRATCH}/tree -B ${SCRATCH}/build -G Ninja
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(expectation STREQUAL "passes" AND NOT result EQUAL 0)
    message(FATAL_ERROR "the unchanged tree does not configure:\n${output}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " flat "${output}")
  if(expectation STREQUAL "fails")
    if(result EQUAL 0)
      message(FATAL_ERROR "configured in spite of: ${message}")
    endif()
    string(FIND "${flat}" "${message}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "expected \"${message}\" in:\n${output}")
    endif()
  endif()
endfunction()

configure(passes "")

file(READ ${SCRATCH}/tree/src/base/error.hpp header)
file(APPEND ${SCRATCH}/tree/src/base/error.hpp "#include \"fleet/fleet.hpp\"\n")
configure(fails "src/base/error.hpp: module 'base' may not include 'fleet'")
file(WRITE ${SCRATCH}/tree/src/base/error.hpp "${header}")

file(READ ${SCRATCH}/tree/CMakeLists.txt lists)
string(REPLACE "orrery_module(hardware DEPS base)" "orrery_module(hardware DEPS base fleet)"
       spoilt "${lists}")
file(WRITE ${SCRATCH}/tree/CMakeLists.txt "${spoilt}")
configure(fails "module 'hardware' depends on 'fleet', which is not below it")
