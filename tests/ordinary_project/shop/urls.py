from django.urls import include, path
from rest_framework.routers import SimpleRouter

from shop import views

router = SimpleRouter()
router.register("users", views.UserViewSet)
urlpatterns = [
    path("", include(router.urls)),
    path("reports/", views.ReportView.as_view()),
    path("open/", views.OpenView.as_view()),
    path("login/", views.login),
    path("ping/", views.ping),
]
