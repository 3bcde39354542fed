# orrery_embed_files(TARGET HEADER FUNCTION FILES...)
#
# Adds to TARGET a generated source that defines `std::span<const EmbeddedFile> FUNCTION()`, declared
# in HEADER, holding the text of FILES (paths from the source root, in the order given).
#
# The same file is the generator: run with -P it writes OUTPUT from HEADER, FUNCTION and FILES.

if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  string(REPLACE "|" ";" files "${FILES}")
  foreach(file IN LISTS files)
    file(READ ${ROOT}/${file} text)
    # A raw string ends at )orrery"; one literal may be long, but not without bound in ISO C++.
    string(LENGTH "${text}" length)
    set(literal "")
    set(at 0)
    while(at LESS length)
      string(SUBSTRING "${text}" ${at} 16000 piece)
      string(APPEND literal "R\"orrery(${piece})orrery\"\n")
      math(EXPR at "${at} + 16000")
    endwhile()
    string(APPEND entries "    {\"${file}\", ${literal}},\n")
  endforeach()
  file(WRITE ${OUTPUT}.new
    "// Generated from the files named below by cmake/EmbedFiles.cmake.\n"
    "#include \"${HEADER}\"\n\n"
    "namespace orrery {\n\n"
    "std::span<const EmbeddedFile> ${FUNCTION}() {\n"
    "  static constexpr EmbeddedFile kFiles[] = {\n${entries}  };\n"
    "  return kFiles;\n"
    "}\n\n"
    "}  // namespace orrery\n")
  file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
  return()
endif()

set(ORRERY_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(orrery_embed_files target header function)
  set(output ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  set(depends "")
  foreach(file IN LISTS ARGN)
    list(APPEND depends ${CMAKE_SOURCE_DIR}/${file})
  endforeach()
  string(REPLACE ";" "|" files "${ARGN}")  # a list would not survive the command line
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUTPUT=${output} -DHEADER=${header}
            -DFUNCTION=${function} "-DFILES=${files}" -P ${ORRERY_EMBED_SCRIPT}
    DEPENDS ${depends} ${ORRERY_EMBED_SCRIPT}
    COMMENT "Embedding ${function}"
    VERBATIM)
  # The literals are longer than ISO C++ promises to take; gcc and clang take them.
  set_source_files_properties(${output} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  target_sources(${target} PRIVATE ${output})
endfunction()
