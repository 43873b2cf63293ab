"""Campaigns: tests that may run for hours, each a command that can be stopped and goes on.

    python tests/campaign.py leak --count 1000000 --minutes 60 --out results/campaigns

A campaign is a row of numbered trials. What a trial does follows from the seed and its number, so
that one that found something can be run again alone. ``tests/test_campaign_*.py`` run each of them
for a moment, and with a planted defect, which it must find. They use this machine's addresses only.
"""
