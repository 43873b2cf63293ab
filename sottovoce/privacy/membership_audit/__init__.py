"""The membership audit: finding out who was in the training data of a text model."""

from sottovoce.privacy.membership_audit.outcomes import MembershipReport, Outcome
from sottovoce.privacy.membership_audit.shadow_models import (
    UserLog,
    deal_out,
    membership,
    read_user_log,
)

__all__ = ["MembershipReport", "Outcome", "UserLog", "deal_out"]
__all__ += ["membership", "read_user_log"]
