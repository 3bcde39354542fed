# orrery_proto(TARGET FILE...)
#
# A library of the messages of these files under proto/. What protoc writes is not held to the
# project's warnings. Services are served and called by their names (src/api), so no code is made of
# them.
function(orrery_proto target)
  set(out ${CMAKE_BINARY_DIR}/generated/proto)
  file(MAKE_DIRECTORY ${out})
  set(sources "")
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" ".pb" stem ${file})
    add_custom_command(
      OUTPUT ${out}/${stem}.cc ${out}/${stem}.h
      COMMAND protobuf::protoc --cpp_out=${out} --proto_path=${CMAKE_SOURCE_DIR}/proto ${file}
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/${file})
    list(APPEND sources ${out}/${stem}.cc)
  endforeach()
  add_library(${target} STATIC ${sources})
  target_compile_options(${target} PRIVATE -w)
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
endfunction()
