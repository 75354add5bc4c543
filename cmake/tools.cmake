# The scripts of tools/ have tests too, each x_test.py beside its x.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
file(GLOB tool_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*_test.py)
foreach(test ${tool_tests})
  get_filename_component(name ${test} NAME_WE)
  add_test(NAME tools.${name} COMMAND ${Python3_EXECUTABLE} ${test})
  set_tests_properties(tools.${name} PROPERTIES TIMEOUT 120)
endforeach()
