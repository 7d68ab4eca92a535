# Compiles several files of one folder as one translation unit: they share headers and templates, and a build from
# nothing takes about half the time (seven files of report: 11.9 s instead of 21.6 s; five text formats: 9.3 s
# instead of 23.5 s). -DREVISIT_TOGETHER=OFF compiles each file by itself, which is quicker when one of them is changed.
option(REVISIT_TOGETHER "compile files of a folder together" ON)

# revisit_unit(RESULT NAME FILE…): a source in RESULT that includes the files, or the files themselves where each is
# compiled by itself. It names them relative to src/ (CMake's own UNITY_BUILD writes whole paths), so that ccache knows
# it again in another checkout.
function(revisit_unit result name)
  set(text "")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src)
    string(APPEND text "#include \"${file}\"\n")
  endforeach()
  if(REVISIT_TOGETHER)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/together/${name}.cpp CONTENT "${text}" @ONLY)
    set(${result} ${CMAKE_CURRENT_BINARY_DIR}/together/${name}.cpp PARENT_SCOPE)
  else()
    set(${result} ${ARGN} PARENT_SCOPE)
  endif()
endfunction()

# gcc takes a file that is included for a header, whose unnamed namespaces differ in every file that includes it.
if(REVISIT_TOGETHER)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# revisit_together(TARGET [AT_MOST n] [OPTIONS option…] FILES beginning…): the files of TARGET whose path below the
# current folder begins so ("report/", "core/profile"; "" is all), those of a room together, at most n (six) in a
# unit, compiled with the options. A file that an earlier call took stays where it is.
function(revisit_together target)
  cmake_parse_arguments(PARSE_ARGV 1 TOGETHER "" "AT_MOST" "OPTIONS;FILES")
  if(NOT TOGETHER_AT_MOST)
    set(TOGETHER_AT_MOST 6)
  endif()
  if(REVISIT_FUZZ)  # as a rule built from nothing
    math(EXPR TOGETHER_AT_MOST "6 * ${TOGETHER_AT_MOST}")
  endif()
  get_target_property(files ${target} SOURCES)
  list(SORT files)
  set(rooms "")
  foreach(file IN LISTS files)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE relative)
    cmake_path(GET relative PARENT_PATH room)
    string(REGEX REPLACE "/.*" "" room "${room}")
    get_source_file_property(taken ${file} TARGET_DIRECTORY ${target} REVISIT_TOGETHER_TAKEN)
    foreach(beginning IN LISTS TOGETHER_FILES)
      if(NOT taken AND relative MATCHES "^${beginning}" AND relative MATCHES "^[a-z].*\\.cpp$")
        set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES REVISIT_TOGETHER_TAKEN ON
                                    COMPILE_OPTIONS "${TOGETHER_OPTIONS}" HEADER_FILE_ONLY ${REVISIT_TOGETHER})
        list(APPEND rooms "${room}.")
        list(APPEND files_of_${room} ${relative})
        break()
      endif()
    endforeach()
  endforeach()
  if(NOT REVISIT_TOGETHER)
    return()
  endif()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    string(REGEX REPLACE "\\.$" "" room "${room}")
    # Units of about one size.
    list(LENGTH files_of_${room} count)
    math(EXPR units "(${count} + ${TOGETHER_AT_MOST} - 1) / ${TOGETHER_AT_MOST}")
    math(EXPR size "(${count} + ${units} - 1) / ${units}")
    foreach(from RANGE 0 ${count} ${size})
      if(from LESS count)
        list(SUBLIST files_of_${room} ${from} ${size} files)
        list(GET files 0 first)
        string(MAKE_C_IDENTIFIER "${target}_${first}" unit)
        revisit_unit(path ${unit} ${files})
        target_sources(${target} PRIVATE ${path})
        set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS "${TOGETHER_OPTIONS}")
      endif()
    endforeach()
  endforeach()
endfunction()
