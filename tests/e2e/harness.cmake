# The faultline program end to end, and the case study's headline.
add_test(NAME harness_e2e COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/harness.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_e2e PROPERTIES LABELS ci TIMEOUT 600)
add_test(NAME harness_effect COMMAND $<TARGET_FILE:faultline> effect --recipe ${PROJECT_SOURCE_DIR}/corpus/recipes/nano-llama3.yaml --out ${CMAKE_CURRENT_BINARY_DIR}/effect)
set_tests_properties(harness_effect PROPERTIES LABELS full TIMEOUT 1800
                     PASS_REGULAR_EXPRESSION "template swap over the mean of [0-9]+ other faults")
# Trainer, second trainer and oracle of a user.
add_test(NAME harness_own_stack COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/own_stack.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_own_stack PROPERTIES LABELS ci TIMEOUT 600)
add_test(NAME harness_doctor COMMAND $<TARGET_FILE:faultline> doctor)
set_tests_properties(harness_doctor PROPERTIES LABELS ci TIMEOUT 120)
add_test(NAME harness_gate COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/gate.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_gate PROPERTIES LABELS full TIMEOUT 600)
# Healthy runs of a second build.
add_test(NAME harness_null COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/null.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_null PROPERTIES LABELS ci TIMEOUT 600)
# kill -9 and full disks at random moments.
add_test(NAME harness_moments_few COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/moments.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR} 3)
set_tests_properties(harness_moments_few PROPERTIES LABELS ci TIMEOUT 600)
add_test(NAME harness_moments COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/moments.sh ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR} 50)
set_tests_properties(harness_moments PROPERTIES LABELS full TIMEOUT 3600)
# Runs that stop at the first verdict have the verdicts of whole ones.
add_test(NAME harness_fast_few COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/fast.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}
         adamw_* ckpt_* input_* dev_* norm_* encode_*)
set_tests_properties(harness_fast_few PROPERTIES LABELS ci TIMEOUT 600)
add_test(NAME harness_fast COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/fast.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_fast PROPERTIES LABELS full TIMEOUT 1800)
# A job array on a Slurm that the test starts.
add_test(NAME harness_slurm COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/slurm.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_slurm PROPERTIES LABELS full TIMEOUT 900 SKIP_RETURN_CODE 77)
# The whole catalogue with four times the horizon of the demo.
add_test(NAME campaign_long COMMAND $<TARGET_FILE:faultline> run --campaign ${PROJECT_SOURCE_DIR}/corpus/campaigns/long.yaml
         --out ${CMAKE_CURRENT_BINARY_DIR}/long)
set_tests_properties(campaign_long PROPERTIES LABELS full TIMEOUT 7200 RUN_SERIAL ON)
# References that follow the runs they judge; both modes of the demo's campaign.
add_test(NAME harness_lockstep COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/lockstep.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
set_tests_properties(harness_lockstep PROPERTIES LABELS ci TIMEOUT 600)
add_test(NAME campaign_lockstep COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/lockstep.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} demo)
set_tests_properties(campaign_lockstep PROPERTIES LABELS full TIMEOUT 3600 RUN_SERIAL ON)
# Ladders of doses, and the rate of false alarms over healthy runs that no bound has seen: an alarm fails the test.
add_test(NAME campaign_doses COMMAND $<TARGET_FILE:faultline> run --campaign ${PROJECT_SOURCE_DIR}/corpus/campaigns/doses.yaml
         --out ${CMAKE_CURRENT_BINARY_DIR}/doses)
add_test(NAME campaign_alarms COMMAND $<TARGET_FILE:faultline> null --campaign ${PROJECT_SOURCE_DIR}/corpus/campaigns/alarms.yaml
         --out ${CMAKE_CURRENT_BINARY_DIR}/alarms)
set_tests_properties(campaign_doses campaign_alarms PROPERTIES LABELS full TIMEOUT 3600 RUN_SERIAL ON)
