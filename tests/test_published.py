"""The paper's figures as data."""

import numpy as np
from numpy.testing import assert_allclose

from ordinalq.datasets import published


def test_spectrum_follows_from_flux_and_effective_areas():
    printed = [
        *(0.0013093, 0.0108366, 0.0761360, 0.2570749, 0.3185078, 0.1962124),
        *(0.0888381, 0.0337817, 0.0120622, 0.0038553, 0.0010955, 0.0002903),
    ]
    assert_allclose(published.fact_spectrum().p, printed, atol=5e-8)


def test_spectrum_with_bin_width():
    printed = [0.0003, 0.0033, 0.0325, 0.1550, 0.2713, 0.2361, 0.1510, 0.0811, 0.0409, 0.0185, 0.0074, 0.0028]
    assert_allclose(published.fact_spectrum(bin_width=True).p, printed, atol=5e-5)


def test_result_tables_have_all_twenty_methods_and_six_data_sets():
    results = published.results()
    assert len(results) == 20
    for method, by_data in results.items():
        assert len(by_data) == 6, method
        for data, by_protocol in by_data.items():
            for by_measure in by_protocol.values():
                assert set(by_measure) == ({"NMD", "RNOD"} if data in ("Amazon-OQ-BK", "Fact-OQ") else {"NMD"})


def test_app_oq_percentages():
    assert [published.app_oq_percent(d) for d in ("Amazon-OQ-BK", "Fact-OQ", "OpenMl-fried-OQ")] == [50, 5, 20]


def test_changing_a_returned_table_changes_no_other():
    published.results()["CC"].clear()
    assert len(published.results()["CC"]) == 6


def test_examples_are_distributions_but_the_last():
    sums = [float(np.sum(p)) for p in published.example_distributions().values()]
    assert_allclose(sums, [1, 1, 1, 1, 1, 0.985])
