"""pytest plugin: the fixture that numba-cuda's tests take from their repository's conftest.py, which the wheel lacks.

It sets whether a failed check of generated code is written to a file; here it is not.
"""

import pytest


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """Asked for by every test class of the suite."""
    request.cls._dump_failed_filechecks = False
