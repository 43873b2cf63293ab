"""The membership audit: finding out who was in the training data of a text model."""

from sottovoce.privacy.membership.audit import audit_membership
from sottovoce.privacy.membership.logs import UserLog, read_user_log
from sottovoce.privacy.membership.report import MembershipReport, Outcome

__all__ = ["MembershipReport", "Outcome", "UserLog", "audit_membership", "read_user_log"]
