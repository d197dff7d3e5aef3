from rest_framework.exceptions import Throttled
from rest_framework.views import exception_handler


def handler(error, context):
    response = exception_handler(error, context)
    if isinstance(error, Throttled):
        response.data = {"error": "slow down", "seconds": error.wait}
    return response
