"""The behaviours of a server behind an aggregation layer (70), and of the layer itself (45), each
with the tests that hold it. A behaviour without a test is listed with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
Lines = dict[int, tuple[str, ...]]
"""Number of a behaviour → files and names of tests, as ``file::name``."""

_IDENTITY, _TRUST = "cluster_home/test_identity.py", "cluster_home/test_trust.py"
_RIGHTS, _ADMISSION = "cluster_home/test_authorization.py", "cluster_home/test_admission.py"
_BACKEND, _GROUPS = "cluster_home/test_backend.py", "cluster_home/test_served_groups.py"
_COPIES, _CONTROLLERS = "cluster_home/test_adoption_api.py", "e2e/test_real_controllers.py"
_PROXY, _FAULTS = "aggregation/test_proxy.py", "aggregation/test_proxy_faults.py"
_REGISTRATION, _ROUTES = "aggregation/test_registration.py", "aggregation/test_routes.py"
_DISCOVERY, _OPENAPI = "aggregation/test_discovery.py", "aggregation/test_openapi.py"
_BOTH, _ADOPT = "aggregation/test_two_instars.py", "adopter/test_adopt.py"

BEHIND: Lines = {
    1: ("adopter/test_adopt_command.py::test_a_group_goes_and_comes_back",),
    2: (
        "server/test_tls.py::test_a_changed_certificate_is_served_without_a_restart_and_open_"
        "connections_continue",
    ),
    3: (
        f"{_IDENTITY}::test_health_needs_no_credentials",
        f"{_IDENTITY}::test_a_token_of_the_main_cluster_is_reviewed_there",
    ),
    4: ("server/test_http2_streams.py::test_a_lost_connection_ends_watches_and_cancels_requests",),
    5: (f"{_BACKEND}::test_a_trailing_slash_is_no_redirect",),
    6: (f"{_BACKEND}::test_parameters_come_in_any_order_and_encoding",),
    7: (f"{_BACKEND}::test_forwarding_headers_change_nothing",),
    8: (f"{_BACKEND}::test_a_body_above_the_limit_is_413",),
    9: (f"{_IDENTITY}::test_health_needs_no_credentials",),
    10: ("cluster_home/test_restart.py::test_it_is_not_ready_before_it_has_read_the_main_cluster",),
    11: (f"{_TRUST}::test_another_ca_of_proxies_is_used_without_a_restart",),
    12: (f"{_TRUST}::test_a_flag_takes_precedence_over_the_config_map",),
    13: (f"{_IDENTITY}::test_the_proxy_of_the_main_cluster_names_the_user",),
    14: (f"{_IDENTITY}::test_a_name_that_the_main_cluster_does_not_allow_is_unauthorized",),
    15: (f"{_IDENTITY}::test_the_proxy_itself_is_no_user",),
    16: (f"{_IDENTITY}::test_headers_without_a_certificate_are_ignored",),
    17: (f"{_TRUST}::test_no_allowed_names_means_every_name_of_the_ca",),
    18: (f"{_BOTH}::test_the_far_server_knows_the_user_and_its_groups",),
    19: (f"{_IDENTITY}::test_extra_keys_are_decoded_and_reach_the_main_clusters_decision",),
    20: (f"{_IDENTITY}::test_a_token_of_the_main_cluster_is_reviewed_there",),
    21: (f"{_IDENTITY}::test_a_certificate_of_the_main_clusters_client_ca_names_its_user",),
    22: (f"{_IDENTITY}::test_a_token_that_the_main_cluster_does_not_know_is_unauthorized",),
    24: (f"{_RIGHTS}::test_masters_and_health_are_allowed_without_a_question",),
    25: (f"{_RIGHTS}::test_equal_questions_are_asked_once",),
    26: (f"{_RIGHTS}::test_the_question_states_the_selectors_of_a_list",),
    28: (f"{_RIGHTS}::test_a_main_cluster_that_hangs_ends_a_request_in_bounded_time",),
    29: (f"{_BACKEND}::test_a_refusal_reads_as_that_of_the_main_cluster",),
    31: (f"{_BACKEND}::test_discovery_tells_everything_of_the_crds",),
    33: (f"{_BACKEND}::test_aggregated_discovery_has_its_content_type_and_tag",),
    34: (f"{_BACKEND}::test_unknown_forms_of_discovery_are_the_plain_one",),
    35: (f"{_BACKEND}::test_discovery_tells_everything_of_the_crds",),
    36: (f"{_BACKEND}::test_discovery_tells_everything_of_the_crds",),
    37: (f"{_GROUPS}::test_discovery_shows_only_custom_groups",),
    38: (f"{_BACKEND}::test_a_new_crd_is_in_discovery_once_it_is_served",),
    39: (f"{_BACKEND}::test_discovery_tells_everything_of_the_crds",),
    40: (f"{_BACKEND}::test_openapi_is_for_the_routed_group_and_cached_by_its_hash",),
    41: (f"{_GROUPS}::test_built_in_groups_are_neither_served_nor_documented",),
    42: (
        f"{_BACKEND}::test_openapi_is_for_the_routed_group_and_cached_by_its_hash",
        "openapi/test_v3_protobuf.py::test_the_form_that_is_named_first_is_sent",
    ),
    43: (f"{_BACKEND}::test_openapi_is_for_the_routed_group_and_cached_by_its_hash",),
    44: (f"{_BOTH}::test_every_verb_goes_through",),
    45: (f"{_BACKEND}::test_strict_validation_and_warnings_reach_the_client",),
    46: (f"{_BACKEND}::test_tables_and_metadata_are_served_and_protobuf_of_objects_is_406",),
    47: (f"{_BACKEND}::test_a_watch_with_initial_events_ends_them_with_a_bookmark",),
    48: (f"{_COPIES}::test_a_watch_or_list_below_the_floor_is_410",),
    49: ("rest/test_watch.py::test_the_future_is_silent",),
    50: (
        f"{_COPIES}::test_its_revision_is_above_the_one_that_it_had",
        f"{_ADOPT}::test_a_revision_of_before_is_410_and_none_goes_down",
    ),
    51: (f"{_BACKEND}::test_a_list_above_the_current_revision_is_a_timeout_that_may_be_repeated",),
    52: (f"{_BACKEND}::test_an_update_with_a_foreign_revision_is_a_conflict",),
    53: (f"{_BACKEND}::test_lists_are_consistent_across_pages",),
    54: (
        f"{_IDENTITY}::test_answers_to_the_proxy_leave_its_own_headers_to_it",
        f"{_PROXY}::test_no_header_comes_twice",
    ),
    55: ("server/test_http2_streams.py::test_a_lost_connection_ends_watches_and_cancels_requests",),
    57: (f"{_BACKEND}::test_discovery_tells_everything_of_the_crds",),
    58: (
        f"{_ADMISSION}::test_a_namespace_that_was_just_created_takes_objects",
        f"{_ADMISSION}::test_a_namespace_that_does_not_exist_takes_none",
        f"{_ADMISSION}::test_a_terminating_namespace_takes_none",
    ),
    59: (
        f"{_ADMISSION}::test_a_policy_of_the_main_cluster_refuses",
        f"{_ADMISSION}::test_a_mutating_policy_of_the_main_cluster_changes_objects",
        f"{_ADMISSION}::test_a_webhook_of_the_main_cluster_that_cannot_be_reached_fails_closed",
    ),
    60: (
        f"{_ADMISSION}::test_a_quota_of_the_main_cluster_is_enforced",
        f"{_ADMISSION}::test_the_status_of_a_quota_is_charged",
    ),
    61: (f"{_ADMISSION}::test_a_policy_sees_the_main_clusters_namespace_and_authorizer",),
    62: (
        "cluster_home/test_conversion.py::test_a_converter_of_this_server_takes_the_place_of_the_"
        "crds_webhook",
        "adopter/test_several_crds.py::test_all_crds_and_versions_go_and_come_back_together",
    ),
    63: (f"{_CONTROLLERS}::test_an_owner_that_exists_in_etcd_keeps_its_object_in_instar",),
    64: (
        f"{_BACKEND}::test_deletion_waits_for_finalizers_and_preconditions",
        f"{_CONTROLLERS}::test_foreground_deletion_waits_for_what_is_owned",
    ),
    65: (f"{_CONTROLLERS}::test_a_deleted_namespace_is_emptied_in_instar",),
    66: (f"{_COPIES}::test_an_object_is_put_as_it_was_with_a_higher_revision",),
    67: (f"{_GROUPS}::test_a_changed_schema_is_followed",),
    68: ("cluster_home/test_restart.py::test_revisions_and_watches_go_on_after_a_restart",),
    69: (
        "adopter/test_replicas.py::test_history_begins_at_the_same_revision_at_both",
        "adopter/test_replicas.py::test_a_write_at_one_replica_goes_back_from_the_other",
    ),
}
BEHIND_WITHOUT: dict[int, str] = {
    23: "no test looks at what a webhook is sent for a proxied request",
    27: "no test waits until a cached decision ends",
    30: "instar asks the main cluster although it has decided already; there is no such option",
    32: "no test asks for a group version while the server starts",
    56: "no test hangs up the main cluster's limit of 60 s",
    70: "memory is measured by bench.aggregated, not tested",
}

LAYER: Lines = {
    1: (f"{_REGISTRATION}::test_an_apiservice_is_validated",),
    2: (f"{_ROUTES}::test_the_port_is_443_unless_given",),
    3: (f"{_REGISTRATION}::test_the_port_and_the_status_are_defaulted_and_kept_apart",),
    4: (f"{_REGISTRATION}::test_the_table_shows_where_it_is_served_and_whether",),
    5: (
        f"{_REGISTRATION}::test_every_built_in_group_has_its_apiservice",
        f"{_REGISTRATION}::test_a_crd_has_an_apiservice_for_each_version",
    ),
    6: (
        f"{_REGISTRATION}::test_a_labelled_apiservice_is_put_back",
        f"{_REGISTRATION}::test_the_label_again_is_the_way_back",
    ),
    7: (f"{_REGISTRATION}::test_without_the_label_it_is_its_owners_for_ever",),
    8: (f"{_REGISTRATION}::test_a_crd_has_an_apiservice_for_each_version",),
    9: (f"{_PROXY}::test_any_method_and_any_path_below_goes_through",),
    10: (f"{_DISCOVERY}::test_the_group_is_made_of_the_apiservices",),
    11: (f"{_DISCOVERY}::test_groups_are_listed_by_priority",),
    12: (f"{_PROXY}::test_a_user_without_rights_is_refused_here",),
    13: (f"{_PROXY}::test_bodies_larger_than_our_own_limit_go_through",),
    14: (
        f"{_PROXY}::test_the_backend_gets_the_user_that_this_server_has_recognised",
        f"{_ROUTES}::test_keys_of_extras_are_lower_case_and_escaped",
    ),
    15: (f"{_PROXY}::test_the_backend_is_told_where_the_request_came_from",),
    16: (f"{_PROXY}::test_the_backend_is_told_where_the_request_came_from",),
    17: (
        f"{_PROXY}::test_the_certificate_is_asked_for_by_the_name_of_the_service",
        f"{_FAULTS}::test_the_name_and_the_roots_of_the_certificate_count",
    ),
    18: (f"{_BOTH}::test_a_changed_client_certificate_is_shown_to_backends",),
    19: (
        f"{_ROUTES}::test_a_service_is_reached_by_its_kind",
        f"{_REGISTRATION}::test_a_ready_endpoint_is_dialled_where_the_operator_says_so",
        f"{_REGISTRATION}::test_a_mapping_of_the_operator_needs_no_service",
    ),
    20: (f"{_FAULTS}::test_a_refused_connection_is_told_until_the_check_notices",),
    21: (f"{_PROXY}::test_redirects_are_refused",),
    22: (f"{_FAULTS}::test_the_timeout_of_the_query_is_obeyed",),
    23: (f"{_FAULTS}::test_a_watch_is_passed_on_event_by_event",),
    24: (f"{_FAULTS}::test_an_upgraded_connection_is_a_tunnel",),
    25: (f"{_REGISTRATION}::test_an_unchanged_condition_is_not_written",),
    26: (
        f"{_ROUTES}::test_what_is_wrong_with_a_service_is_said_as_upstream",
        f"{_ROUTES}::test_a_condition_that_is_there_already_is_not_written",
    ),
    27: (f"{_ROUTES}::test_the_time_of_a_condition_moves_only_with_its_status",),
    28: (f"{_ROUTES}::test_without_the_condition_a_remote_route_is_not_available",),
    29: (f"{_ROUTES}::test_a_flipped_route_is_available_by_its_old_condition",),
    30: (
        f"{_DISCOVERY}::test_a_backend_is_asked_as_upstream_asks",
        f"{_DISCOVERY}::test_an_old_backend_is_asked_for_each_group_version",
    ),
    31: (f"{_DISCOVERY}::test_a_failing_backend_leaves_a_staleentry",),
    32: (f"{_DISCOVERY}::test_a_version_that_the_backend_does_not_tell_is_empty_and_current",),
    33: (f"{_DISCOVERY}::test_the_remote_entry_hides_the_crd_and_goes_with_the_apiservice",),
    34: (f"{_DISCOVERY}::test_one_version_is_cut_out_of_the_document",),
    35: (f"{_OPENAPI}::test_openapi_v2_has_the_paths_of_the_route_and_what_they_need",),
    36: (
        f"{_OPENAPI}::test_openapi_v3_has_only_the_key_that_is_routed",
        f"{_OPENAPI}::test_a_backend_without_openapi_v3_is_converted",
    ),
    37: (f"{_OPENAPI}::test_a_route_that_begins_as_a_local_one_gets_its_openapi",),
    38: (f"{_DISCOVERY}::test_readiness_names_the_first_round_of_discovery",),
    39: (f"{_DISCOVERY}::test_metrics_tell_which_apis_are_unavailable",),
    41: (f"{_FAULTS}::test_local_watches_end_when_the_route_leads_away",),
    45: (f"{_ADOPT}::test_no_acknowledged_write_is_lost_and_every_read_is_answered",),
}
LAYER_WITHOUT: dict[int, str] = {
    40: "instar's own collectors look at its own objects; kube-controller-manager is run instead",
    42: "a watch far above the current revision waits, as upstream's does",
    43: "a mover waits for writes in flight itself (--in-flight)",
    44: "instar adopt asks each API server, which shows the header X-Served-By",
}


@pytest.mark.parametrize(
    ("lines", "without", "count"),
    [(BEHIND, BEHIND_WITHOUT, 70), (LAYER, LAYER_WITHOUT, 45)],
    ids=["behind", "layer"],
)
def test_every_behaviour_has_a_test_that_exists_or_a_reason(
    lines: Lines, without: dict[int, str], count: int
) -> None:
    named = sorted({each for tests in lines.values() for each in tests})

    assert sorted([*lines, *without]) == [*range(1, count + 1)]
    assert [each for each in named if each.partition("::")[2] not in _names(each)] == []


def _names(test: str) -> set[str]:
    tree = ast.parse((_TESTS / test.partition("::")[0]).read_text())
    return {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
